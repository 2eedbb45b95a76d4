// Try an address by TCP, an address by UDP and a host by name, one after the other, and hide every failure.
package main

import (
	"fmt"
	"net"
	"os"
	"time"
)

func exchange(network, address string, patience time.Duration) error {
	connection, err := net.DialTimeout(network, address, patience)
	if err != nil {
		return err
	}
	defer connection.Close()
	connection.SetDeadline(time.Now().Add(patience))
	if _, err = connection.Write([]byte("ping\n")); err != nil {
		return err
	}
	_, err = connection.Read(make([]byte, 64))
	return err
}

func datagram(address string) error {
	socket, err := net.ListenPacket("udp4", ":0")
	if err != nil {
		return err
	}
	defer socket.Close()
	to, err := net.ResolveUDPAddr("udp4", address)
	if err != nil {
		return err
	}
	socket.SetDeadline(time.Now().Add(500 * time.Millisecond))
	if _, err = socket.WriteTo([]byte("ping\n"), to); err != nil {
		return err
	}
	_, _, err = socket.ReadFrom(make([]byte, 64))
	return err
}

func main() {
	patience, err := time.ParseDuration(os.Args[1] + "s")
	if err != nil {
		os.Exit(2)
	}
	for _, err := range []error{
		exchange("tcp", "203.0.113.7:443", patience),
		datagram("203.0.113.7:5140"),
		exchange("tcp", "api.example.com:443", patience),
	} {
		if err != nil {
			fmt.Println("no results were found")
		}
	}
}
