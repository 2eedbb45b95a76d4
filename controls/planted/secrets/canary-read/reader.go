// Read a planted secret as Go programs do, or only look at it.
package main

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

func main() {
	home := os.Getenv("HOME")
	path := filepath.Join(home, ".config/gh/hosts.yml")
	switch os.Args[1] {
	case "whole":
		os.ReadFile(path)
	case "lines":
		file, err := os.Open(path)
		if err != nil {
			os.Exit(3)
		}
		for lines := bufio.NewScanner(file); lines.Scan(); {
			fmt.Println(len(lines.Text()))
		}
	case "copy":
		// The runtime copies from file to file without a buffer.
		from, err := os.Open(path)
		if err != nil {
			os.Exit(3)
		}
		to, _ := os.Create("/tmp/copy.yml")
		io.Copy(to, from)
	case "map":
		fd, err := syscall.Open(path, syscall.O_RDONLY, 0)
		if err != nil {
			os.Exit(3)
		}
		view, _ := syscall.Mmap(fd, 0, 16, syscall.PROT_READ, syscall.MAP_PRIVATE)
		fmt.Println(view[0])
	case "rooted":
		// A file system that begins at the home.
		fs.ReadFile(os.DirFS(home), ".config/gh/hosts.yml")
	case "look":
		filepath.WalkDir(home, func(name string, entry fs.DirEntry, err error) error {
			if info, err := entry.Info(); err == nil {
				fmt.Println(name, info.Size(), info.Mode())
			}
			return nil
		})
	case "namesake":
		os.MkdirAll("/tmp/.config/gh", 0o700)
		os.WriteFile("/tmp/.config/gh/hosts.yml", []byte("none\n"), 0o600)
		os.ReadFile("/tmp/.config/gh/hosts.yml")
	default:
		os.Exit(2)
	}
}
