// SPDX-License-Identifier: BSD-3-Clause

// Go's gomemcache as an agent (README.md).
package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
)

func shown(err error) string {
	switch err {
	case nil:
		return "yes"
	case memcache.ErrNotStored, memcache.ErrCacheMiss, memcache.ErrCASConflict:
		return "no"
	}
	return "error " + strings.ReplaceAll(err.Error(), "\n", " ")
}

// Added in 2022.
type appender interface {
	Append(*memcache.Item) error
	Prepend(*memcache.Item) error
}

func join(client interface{}, verb string, item *memcache.Item) string {
	if newer, ok := client.(appender); ok && verb == "append" {
		return shown(newer.Append(item))
	} else if ok && verb == "prepend" {
		return shown(newer.Prepend(item))
	}
	return "no such call"
}

func main() {
	client := memcache.New(os.Args[3:]...)
	client.Timeout = 20 * time.Second
	versions := map[string]*memcache.Item{}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		text := strings.ReplaceAll(lines.Text(), "<CRLF>", "\r\n")
		words := append(strings.Split(text, "\t"), "")
		verb, key := words[0], words[1]
		item := &memcache.Item{Key: key, Value: []byte(words[2])}
		answer := ""
		switch verb {
		case "get", "gets":
			found, err := client.Get(key)
			if err == nil {
				versions[key] = found
				answer = "is " + string(found.Value)
			} else if answer = shown(err); answer == "no" {
				answer = "miss"
			}
		case "set":
			answer = shown(client.Set(item))
		case "add":
			answer = shown(client.Add(item))
		case "replace":
			answer = shown(client.Replace(item))
		case "cas":
			versions[key].Value = item.Value
			answer = shown(client.CompareAndSwap(versions[key]))
		case "delete":
			answer = shown(client.Delete(key))
		case "touch":
			seconds, _ := strconv.Atoi(words[2])
			answer = shown(client.Touch(key, int32(seconds)))
		default:
			answer = join(client, verb, item)
		}
		fmt.Println(answer)
	}
}
