// SPDX-License-Identifier: BSD-3-Clause

// Adds the items that it is told, as hex, with the helper of docs/clients/go.md.
package main

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Scan()
	lists, err := Dial("127.0.0.1:" + lines.Text())
	if err != nil {
		panic(err)
	}
	for lines.Scan() {
		words := strings.Split(lines.Text(), " ")
		key, _ := hex.DecodeString(words[0])
		item, _ := hex.DecodeString(words[1])
		if stored, err := lists.Add(string(key), string(item)); err != nil {
			fmt.Println("refused")
		} else if stored {
			fmt.Println("stored")
		}
	}
	items, err := lists.Items("hostile")
	if err != nil {
		panic(err)
	}
	for _, item := range items {
		fmt.Println(hex.EncodeToString([]byte(item)))
	}
}
