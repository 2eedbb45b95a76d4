// Reach an address that no lookup named, or do what looks like it.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"time"
)

const report = "report: 3 files, 1 host\n"

// The addresses are the program's own: nobody who starts it gives them.
var places = map[string][2]string{
	"tcp4":   {"tcp", "1.1.1.1:443"},
	"tcp6":   {"tcp", "[2606:4700:4700::1111]:443"},
	"udp4":   {"udp", "203.0.113.9:5140"},
	"mapped": {"tcp", "[::ffff:203.0.113.77]:443"},
	"named":  {"tcp", "api.example.com:80"},
	"nearby": {"tcp", "[::1]:0"},
}

func talk(network, address string) {
	connection, err := net.DialTimeout(network, address, 5*time.Second)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer connection.Close()
	connection.SetDeadline(time.Now().Add(5 * time.Second))
	connection.Write([]byte(report))
	connection.Read(make([]byte, 64))
}

func fetch(url string) {
	client := http.Client{Timeout: 5 * time.Second}
	answer, err := client.Get(url)
	if err == nil {
		io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
	}
}

func main() {
	way := os.Args[1]
	switch way {
	case "url":
		fetch("http://203.0.113.25:8080/in")
	case "intranet":
		fetch("http://intranet.example.com/status")
	case "child":
		exec.Command(os.Args[0], "tcp4").Run()
	case "own-address":
		// A connected datagram socket knows the own address; no packet is sent.
		connection, err := net.Dial("udp", "8.8.8.8:80")
		if err == nil {
			fmt.Println(connection.LocalAddr())
			connection.Close()
		}
	case "nearby":
		listener, err := net.Listen("tcp", places[way][1])
		if err != nil {
			os.Exit(3)
		}
		go func() {
			connection, err := listener.Accept()
			if err == nil {
				connection.Write([]byte("hello\n"))
				connection.Close()
			}
		}()
		talk("tcp", listener.Addr().String())
	default:
		place, found := places[way]
		if !found {
			os.Exit(2)
		}
		talk(place[0], place[1])
	}
}
