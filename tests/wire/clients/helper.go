// SPDX-License-Identifier: BSD-3-Clause

// Calls scripts/clients/go as the lines of its input say; README.md has their words.
package main

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"time"

	"mclistd"
)

func text(word string) string {
	found, _ := hex.DecodeString(word)
	return string(found)
}

func argument(word string) any {
	switch word[0] {
	case 'l':
		items := []string{}
		for _, item := range strings.Split(word[1:], ",") {
			if word != "l" {
				items = append(items, text(item))
			}
		}
		return items
	case 's':
		return text(word[1:])
	case 'i':
		number, _ := strconv.ParseInt(word[1:], 10, 64)
		return number
	}
	return word[0] == 't'
}

func shown(value any) string {
	switch value := value.(type) {
	case bool:
		return strconv.FormatBool(value)
	case int64:
		if value == mclistd.None {
			return "null"
		}
		return fmt.Sprintf("i%d", value)
	case string:
		return "s" + hex.EncodeToString([]byte(value))
	case mclistd.Refused:
		return "refused:" + hex.EncodeToString([]byte(value))
	case mclistd.Lost:
		return "lost"
	case mclistd.BadCall:
		return "bad"
	case error:
		return "moved"
	}
	found := reflect.ValueOf(value)
	if !found.IsValid() || found.IsNil() {
		return "null"
	}
	parts := []string{}
	if found.Kind() == reflect.Map {
		for _, key := range found.MapKeys() {
			parts = append(parts, shown(key.Interface())+"="+shown(found.MapIndex(key).Interface()))
		}
		sort.Strings(parts)
		return "{" + strings.Join(parts, " ") + "}"
	}
	for i := 0; i < found.Len(); i++ {
		parts = append(parts, shown(found.Index(i).Interface()))
	}
	return "[" + strings.Join(parts, " ") + "]"
}

// Lput and Lcopy have options in place of words that may be left out.
func options(args []any) (found []reflect.Value) {
	for at, arg := range args {
		switch arg := arg.(type) {
		case int64:
			option := mclistd.Exptime(arg)
			if at == 1 {
				option = mclistd.Token(arg)
			}
			found = append(found, reflect.ValueOf(option))
		case bool:
			if arg {
				found = append(found, reflect.ValueOf(mclistd.IfNew))
			}
		}
	}
	return found
}

func call(face any, name string, args []any) any {
	method := reflect.ValueOf(face).MethodByName(strings.ToUpper(name[:1]) + name[1:])
	values := []reflect.Value{}
	for at, arg := range args {
		if at == 2 && (name == "lput" || name == "lcopy") {
			values = append(values, options(args[2:])...)
			break
		}
		values = append(values, reflect.ValueOf(arg))
	}
	results := method.Call(values)
	if err := results[len(results)-1]; !err.IsNil() {
		return err.Interface()
	}
	return results[0].Interface()
}

func pages(lists *mclistd.Lists, args []any) any {
	found := [][]string{}
	err := lists.Pages(args[0].(string), args[1].(int64), len(args) > 2, func(page []string) bool {
		found = append(found, page)
		return true
	})
	if err != nil {
		return err
	}
	return found
}

func main() {
	var lists *mclistd.Lists
	var pipe *mclistd.Pipeline
	lines := bufio.NewScanner(os.Stdin)
	for lines.Buffer(nil, 1<<20); lines.Scan(); {
		words := strings.Split(lines.Text(), " ")
		args := []any{}
		for _, word := range words[1:] {
			args = append(args, argument(word))
		}
		var value any
		switch name := words[0]; {
		case name == "open":
			lists = mclistd.New(fmt.Sprintf("127.0.0.1:%d", args[0]))
			lists.Timeout = time.Duration(args[1].(int64)) * time.Millisecond
			lists.Delimiter = args[2].(string)
			if len(args) > 3 {
				lists.Login = args[3].(string)
			}
		case name == "pipeline":
			pipe = lists.Pipeline()
		case name == "run":
			value = pipe.Run()
			pipe = nil
		case name == "pages":
			value = pages(lists, args)
		case pipe != nil:
			if value = call(pipe, name, args); !errors.As(asError(value), new(mclistd.BadCall)) {
				value = nil
			}
		case name == "lgets":
			items, version, err := lists.Lgets(args[0].(string))
			if err != nil || items == nil {
				value = err
				break
			}
			fmt.Println(shown(items) + "@" + shown(version))
			continue
		default:
			value = call(lists, name, args)
		}
		fmt.Println(shown(value))
	}
}

func asError(value any) error {
	err, _ := value.(error)
	return err
}
