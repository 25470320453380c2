// SPDX-License-Identifier: BSD-3-Clause

// Package mclistd has the list verbs of mclistd: each is a method that has its name and takes its
// words.
//
//	lists := mclistd.New("127.0.0.1:11220")
//	lists.Ladd("followers:ann", "bob", "carol smith")
//	names, err := lists.Lrevrange("followers:ann", 0, 9) // [carol smith bob]
//
// A verb that answers with a word gives true, or false for NOT_STORED, NOT_FOUND and EXISTS. A
// number is an int64, None for NOT_FOUND or NOT_STORED in its place; of items that is nil.
package mclistd

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"strconv"
	"strings"
	"time"
)

// None stands for a number that the answer does not have.
const None = math.MinInt64

const batchBytes = 16384 // of a pipeline, sent before its answers are read: sockets take so many
const lineBytesMax = 65536

// Refused is the proxy's line of error. The connection goes on.
type Refused string

// Lost: no answer, or none that can be read: the request may have been done. The connection is
// closed, and the next request makes a new one.
type Lost string

// BadCall is what the proxy would not take for one request. Nothing was sent.
type BadCall string

func (e Refused) Error() string { return string(e) }
func (e Lost) Error() string    { return string(e) }
func (e BadCall) Error() string { return string(e) }

// ErrMoved ends pages: no item of the last one says where the next one begins.
var ErrMoved = errors.New("no item of the last page can say where the next one begins")

// Lists is one connection, which the first request makes. For one goroutine at a time.
type Lists struct {
	Address   string        // HOST:PORT or the path of a unix socket
	Timeout   time.Duration // for each batch of requests and its answers; 0: for ever
	Delimiter string
	Login     string      // "USER PASSWORD"
	TLS       *tls.Config // nil: none
	conn      net.Conn
	in        *bufio.Reader
	pipe      *[]call // calls that wait for Run
}

type block struct {
	words []string
	data  string
}

type answer struct {
	line   string
	blocks []block // nil: a line
}

type reader func(answer) (any, bool)

type call struct {
	read    reader
	request string
}

// New gives lists over a connection to the address.
func New(address string) *Lists {
	return &Lists{Address: address, Timeout: 3 * time.Second, Delimiter: ","}
}

// Option is how the time to live and the conditions of Lput and Lcopy are given.
type Option string

// Exptime is a time to live as memcached's set has it; Token, behind it, that of a lease; IfNew: only
// where the list is missing or empty.
func Exptime(seconds int64) Option { return Option(fmt.Sprintf(" %d", seconds)) }
func Token(token int64) Option     { return Option(fmt.Sprintf(" %d", token)) }

const IfNew Option = " new"

// --- changes ---

func (l *Lists) Ladd(key string, items ...string) (bool, error) {
	return l.change("ladd", key, "", items)
}
func (l *Lists) Ldel(key string, items ...string) (bool, error) {
	return l.change("ldel", key, "", items)
}
func (l *Lists) Laddt(key string, seconds int64, items ...string) (bool, error) {
	return l.change("laddt", key, fmt.Sprintf(" %d", seconds), items)
}
func (l *Lists) Lset(key string, items ...string) (bool, error) { return l.done("lset", key, items...) }
func (l *Lists) Lcreate(key string, items ...string) (bool, error) {
	return l.done("lcreate", key, items...)
}
func (l *Lists) Laddx(key string, items ...string) (int64, error) {
	return l.count("laddx", []string{key}, items)
}
func (l *Lists) Ldelx(key string, items ...string) (int64, error) {
	return l.count("ldelx", []string{key}, items)
}

// Lput takes items of any bytes.
func (l *Lists) Lput(key string, items []string, options ...Option) (bool, error) {
	var text strings.Builder
	for _, item := range items {
		text.WriteString("ITEM x " + data(item))
	}
	line, err := lineOf("lputb", key)
	return as[bool](l.do(done, fmt.Sprintf("%s %d%s\r\n%s\r\n", line, text.Len(), tail(options), &text), err))
}

func (l *Lists) Lcopy(src, dst string, options ...Option) (int64, error) {
	line, err := lineOf("lcopy", src, dst)
	return as[int64](l.do(number, line+tail(options)+"\r\n", err))
}

func (l *Lists) Ltouch(key string, exptime int64) (bool, error) {
	return l.done("ltouch", key, dec(exptime))
}
func (l *Lists) Ldrop(key string) (bool, error)     { return l.done("ldrop", key) }
func (l *Lists) Lcompact(key string) (bool, error)  { return l.done("lcompact", key) }
func (l *Lists) Lpurge(key string) (int64, error)   { return l.number("lpurge", key) }
func (l *Lists) Lconvert(key string) (int64, error) { return l.number("lconvert", key) }
func (l *Lists) Lmigrate(key string) (bool, error)  { return l.done("lmigrate", key) }

// Llease gives the token; 0: another client has the lease; None: the list is there.
func (l *Lists) Llease(key string, seconds int64) (int64, error) {
	return as[int64](l.ask(token, "llease", key, dec(seconds)))
}

// --- reads ---

func (l *Lists) Lget(key string) ([]string, error) { return l.items("lgetb", key) }

// Lgets gives the items and their version; nil: there are none.
func (l *Lists) Lgets(key string) ([]string, int64, error) {
	found, err := as[versioned](l.ask(l.versioned, "lgets", key))
	return found.items, found.version, err
}

// Lgetx gives the items of each key, of one instant; a list that is missing is left out.
func (l *Lists) Lgetx(keys ...string) (map[string][]string, error) {
	return as[map[string][]string](l.askSome(l.each, "lgetx", nil, keys))
}

// Lhas gives those of the items that are in the list.
func (l *Lists) Lhas(key string, items ...string) ([]string, error) {
	if len(items) != 1 {
		return as[[]string](l.askSome(l.split, "lhas", []string{key}, items))
	}
	line, err := lineOf("lhasb", key)
	return as[[]string](l.do(whole, line+" "+data(items[0]), err))
}

func (l *Lists) Llen(key string) (int64, error) { return l.number("llen", key) }

// Lttl gives seconds, -1 for never; with an item, those of the item.
func (l *Lists) Lttl(key string, item ...string) (int64, error) {
	if len(item) == 0 {
		return l.number("lttl", key)
	}
	line, err := lineOf("lttlb", key)
	return as[int64](l.do(number, line+" "+data(item[0]), err))
}

func (l *Lists) Lrange(key string, from, to int64) ([]string, error) {
	return l.items("lrange", key, dec(from), dec(to))
}
func (l *Lists) Lrevrange(key string, from, to int64) ([]string, error) {
	return l.items("lrevrange", key, dec(from), dec(to))
}
func (l *Lists) Lafter(key, item string, count int64) ([]string, error) {
	return l.items("lafter", key, item, dec(count))
}
func (l *Lists) Lbefore(key, item string, count int64) ([]string, error) {
	return l.items("lbefore", key, item, dec(count))
}
func (l *Lists) Lrandom(key string, count int64) ([]string, error) {
	return l.items("lrandomb", key, dec(count))
}
func (l *Lists) Lstat(key string) (map[string]string, error) {
	return as[map[string]string](l.ask(stats, "lstat", key))
}

// Pages calls page with one page of the list after the other, from its oldest item or its newest,
// until it returns false. Each goes on behind the last item of the one before, or the one before
// that, if it has left the list meanwhile.
func (l *Lists) Pages(key string, count int64, newest bool, page func([]string) bool) error {
	first, next := l.Lrange, l.Lafter
	if newest {
		first, next = l.Lrevrange, l.Lbefore
	}
	found, err := first(key, 0, count-1)
	for err == nil && len(found) > 0 && page(found) {
		found, err = following(next, key, found, count)
	}
	return err
}

func following(next func(string, string, int64) ([]string, error), key string, page []string, count int64) ([]string, error) {
	behind := map[string]bool{}
	for at := len(page) - 1; at >= 0; at-- {
		if isWord(page[at]) {
			found, err := next(key, page[at], count+int64(len(behind)))
			if found != nil || err != nil {
				fresh := []string{}
				for _, item := range found {
					if !behind[item] && int64(len(fresh)) < count {
						fresh = append(fresh, item)
					}
				}
				return fresh, err
			}
		}
		behind[page[at]] = true
	}
	return nil, ErrMoved
}

// --- several lists ---

func (l *Lists) Linter(keys ...string) ([]string, error) {
	return as[[]string](l.askSome(l.split, "linter", nil, keys))
}
func (l *Lists) Lunion(keys ...string) ([]string, error) {
	return as[[]string](l.askSome(l.split, "lunion", nil, keys))
}
func (l *Lists) Ldiff(keys ...string) ([]string, error) {
	return as[[]string](l.askSome(l.split, "ldiff", nil, keys))
}
func (l *Lists) Linterlen(keys ...string) (int64, error) { return l.count("linterlen", nil, keys) }
func (l *Lists) Lunionlen(keys ...string) (int64, error) { return l.count("lunionlen", nil, keys) }
func (l *Lists) Ldifflen(keys ...string) (int64, error)  { return l.count("ldifflen", nil, keys) }
func (l *Lists) Linterstore(dst string, keys ...string) (int64, error) {
	return l.count("linterstore", []string{dst}, keys)
}
func (l *Lists) Lunionstore(dst string, keys ...string) (int64, error) {
	return l.count("lunionstore", []string{dst}, keys)
}
func (l *Lists) Ldiffstore(dst string, keys ...string) (int64, error) {
	return l.count("ldiffstore", []string{dst}, keys)
}
func (l *Lists) Lpop(key string, count int64) ([]string, error) {
	return l.items("lpopb", key, dec(count))
}
func (l *Lists) Lpopto(src, dst string, count int64) ([]string, error) {
	return l.items("lpoptob", src, dst, dec(count))
}
func (l *Lists) Lmove(src, dst string, items ...string) (int64, error) {
	return l.count("lmove", []string{src, dst}, items)
}

// Ltx takes lines, each the verb, which is ladd, ldel, lset, lrequire or lrefuse, a key, and items.
func (l *Lists) Ltx(changes ...[]string) (bool, error) {
	text := ""
	for _, change := range changes {
		if len(change) < 2 || !strings.Contains(" ladd ldel lset lrequire lrefuse ", " "+change[0]+" ") {
			return false, BadCall("no line of a transaction")
		}
		line, err := requestOf(change[0], change[1], "", change[2:])
		if err != nil {
			return false, err
		}
		text += line
	}
	return as[bool](l.do(done, fmt.Sprintf("ltx %d\r\n%s\r\n", len(text), text), nil))
}

// --- requests ---

// Pipeline gives lists whose verbs only note the calls, and answer nothing; Run sends them together.
func (l *Lists) Pipeline() *Pipeline {
	queued := *l
	queued.pipe = &[]call{}
	return &Pipeline{queued, l}
}

// Pipeline has the verbs of Lists. Up to 16 KB of requests are under way at a time, so that neither
// side waits for the other.
type Pipeline struct {
	Lists
	lists *Lists
}

// Run gives the value of each call, or its error in that place.
func (p *Pipeline) Run() []any {
	calls := *p.pipe
	*p.pipe = nil
	return p.lists.run(calls)
}

func dec(number int64) string { return strconv.FormatInt(number, 10) }

func data(item string) string { return fmt.Sprintf("%d\r\n%s\r\n", len(item), item) }

func isWord(word string) bool {
	for i := 0; i < len(word); i++ {
		if word[i] <= ' ' || word[i] == 0x7f {
			return false
		}
	}
	return word != ""
}

func lineOf(verb string, words ...string) (string, error) {
	for _, word := range words {
		if !isWord(word) {
			return "", BadCall(fmt.Sprintf("no key, nor an item that can stand beside others: %.80q", word))
		}
	}
	return strings.Join(append([]string{verb}, words...), " "), nil
}

// One item may have any bytes.
func requestOf(verb, key, seconds string, items []string) (string, error) {
	if len(items) == 0 && verb != "lset" {
		return "", BadCall("nothing is named")
	}
	if len(items) == 1 && verb != "lset" {
		line, err := lineOf(verb+"b", key)
		return line + seconds + " " + data(items[0]), err
	}
	head, err := lineOf(verb, key)
	if err != nil {
		return "", err
	}
	words, err := lineOf("", items...)
	return head + seconds + words + "\r\n", err
}

func tail(options []Option) (text string) {
	for _, option := range options {
		text += string(option)
	}
	return text
}

func (l *Lists) change(verb, key, seconds string, items []string) (bool, error) {
	request, err := requestOf(verb, key, seconds, items)
	return as[bool](l.do(done, request, err))
}

func (l *Lists) ask(read reader, verb string, words ...string) (any, error) {
	line, err := lineOf(verb, words...)
	return l.do(read, line+"\r\n", err)
}

func (l *Lists) askSome(read reader, verb string, first, words []string) (any, error) {
	if len(words) == 0 {
		return nil, BadCall("nothing is named")
	}
	return l.ask(read, verb, append(first, words...)...)
}

func (l *Lists) done(verb, key string, words ...string) (bool, error) {
	return as[bool](l.ask(done, verb, append([]string{key}, words...)...))
}

func (l *Lists) number(verb, key string, words ...string) (int64, error) {
	return as[int64](l.ask(number, verb, append([]string{key}, words...)...))
}

func (l *Lists) count(verb string, first, words []string) (int64, error) {
	return as[int64](l.askSome(number, verb, first, words))
}

func (l *Lists) items(verb, key string, words ...string) ([]string, error) {
	return as[[]string](l.ask(l.split, verb, append([]string{key}, words...)...))
}

// What a pipeline has only noted is the empty value.
func as[T any](value any, err error) (T, error) {
	found, _ := value.(T)
	return found, err
}

func (l *Lists) do(read reader, request string, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	if l.pipe != nil {
		*l.pipe = append(*l.pipe, call{read, request})
		return nil, nil
	}
	value := l.run([]call{{read, request}})[0]
	if err, failed := value.(error); failed {
		return nil, err
	}
	return value, nil
}

// The result of each call, or its error. Behind the first that is lost, all are.
func (l *Lists) run(calls []call) []any {
	results := []any{}
	known := "nothing was sent"
	err := l.connect()
	for sent := 0; err == nil && sent < len(calls); {
		known = "no answer, the outcome is unknown"
		end, batch := sent+1, calls[sent].request
		for end < len(calls) && len(batch)+len(calls[end].request) <= batchBytes {
			batch += calls[end].request
			end++
		}
		if err = l.send(batch); err != nil {
			break
		}
		for ; sent < end && err == nil; sent++ {
			var value any
			if value, err = l.result(calls[sent].read); err == nil {
				results = append(results, value)
			}
		}
	}
	if err != nil {
		l.Close()
	}
	refused, atLogin := err.(Refused)
	for len(results) < len(calls) {
		if atLogin {
			results = append(results, refused)
			continue
		}
		results = append(results, Lost(fmt.Sprintf("%s: %v", known, err)))
	}
	return results
}

// --- the connection ---

// Close ends the connection; the next request makes a new one.
func (l *Lists) Close() {
	if l.conn != nil {
		l.conn.Close()
	}
	l.conn = nil
}

func (l *Lists) connect() (err error) {
	if l.conn != nil {
		return nil
	}
	network := "tcp"
	if strings.HasPrefix(l.Address, "/") {
		network = "unix"
	}
	dialer := &net.Dialer{Timeout: l.Timeout}
	if l.TLS != nil {
		l.conn, err = tls.DialWithDialer(dialer, network, l.Address, l.TLS)
	} else {
		l.conn, err = dialer.Dial(network, l.Address)
	}
	if err != nil {
		l.conn = nil
		return err
	}
	l.in = bufio.NewReaderSize(l.conn, lineBytesMax)
	if l.Login == "" {
		return nil
	}
	if err = l.send("set login 0 0 " + data(l.Login)); err != nil {
		return err
	}
	found, err := l.answer()
	if err == nil && found.line != "STORED" {
		err = errors.New("the login was refused")
	}
	return err
}

func (l *Lists) send(text string) error {
	if l.Timeout > 0 {
		l.conn.SetDeadline(time.Now().Add(l.Timeout))
	}
	_, err := io.WriteString(l.conn, text)
	return err
}

var errStep = errors.New("the answer is out of step")

func (l *Lists) line() (string, error) {
	line, err := l.in.ReadSlice('\n')
	if err == nil && !strings.HasSuffix(string(line), "\r\n") {
		err = errStep
	}
	if err != nil {
		return "", err
	}
	return string(line[:len(line)-2]), nil
}

// So many bytes, and the line end behind them, which is not returned.
func (l *Lists) take(size string) (string, error) {
	count, err := strconv.ParseUint(size, 10, 31)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	if _, err = io.CopyN(&text, l.in, int64(count)+2); err != nil {
		return "", err
	}
	if !strings.HasSuffix(text.String(), "\r\n") {
		return "", errStep
	}
	return text.String()[:count], nil
}

// A line, or the blocks before END.
func (l *Lists) answer() (answer, error) {
	blocks := []block{}
	for {
		line, err := l.line()
		if err != nil {
			return answer{}, err
		}
		words := strings.Split(line, " ")
		switch words[0] {
		case "ERROR", "CLIENT_ERROR", "SERVER_ERROR":
			return answer{}, Refused(line)
		case "END":
			return answer{blocks: blocks}, nil
		case "STAT":
			blocks = append(blocks, block{words: words})
		case "VALUE", "ITEM":
			at := map[string]int{"VALUE": 3, "ITEM": 2}[words[0]]
			if len(words) <= at {
				return answer{}, errStep
			}
			text, err := l.take(words[at])
			if err != nil {
				return answer{}, err
			}
			blocks = append(blocks, block{words, text})
		default:
			if len(blocks) > 0 {
				return answer{}, errStep
			}
			return answer{line: line}, nil
		}
	}
}

func (l *Lists) result(read reader) (any, error) {
	found, err := l.answer()
	if refused, is := err.(Refused); is {
		return refused, nil
	}
	if err != nil {
		return nil, err
	}
	value, good := read(found)
	if !good {
		return nil, fmt.Errorf("%.80q is no answer to this", found.line)
	}
	return value, nil
}

// --- shapes of answers ---

func done(found answer) (any, bool) {
	switch found.line {
	case "STORED", "DELETED", "OK", "TOUCHED":
		return true, true
	case "NOT_STORED", "NOT_FOUND", "EXISTS":
		return false, true
	}
	return nil, false
}

func number(found answer) (any, bool) {
	if found.line == "NOT_FOUND" || found.line == "NOT_STORED" {
		return int64(None), true
	}
	value, err := strconv.ParseInt(found.line, 10, 64)
	return value, err == nil
}

func token(found answer) (any, bool) {
	switch found.line {
	case "NOT_STORED":
		return int64(0), true
	case "EXISTS":
		return int64(None), true
	}
	return number(found)
}

func (l *Lists) list(text string) []string {
	if text == "" {
		return []string{}
	}
	return strings.Split(text, l.Delimiter)
}

func (l *Lists) split(found answer) (any, bool) {
	items := []string{}
	for _, one := range found.blocks {
		if one.words[0] == "ITEM" {
			items = append(items, one.data)
		} else {
			items = append(items, l.list(one.data)...)
		}
	}
	if found.line == "NOT_FOUND" {
		items = nil
	}
	return items, found.blocks != nil || items == nil
}

func whole(found answer) (any, bool) {
	items := []string{}
	for _, one := range found.blocks {
		items = append(items, one.data)
	}
	return items, found.blocks != nil
}

type versioned struct {
	items   []string
	version int64
}

func (l *Lists) versioned(found answer) (any, bool) {
	if len(found.blocks) == 0 {
		return versioned{}, found.blocks != nil
	}
	words := found.blocks[0].words
	if len(words) < 5 {
		return nil, false
	}
	version, err := strconv.ParseInt(words[4], 10, 64)
	return versioned{l.list(found.blocks[0].data), version}, err == nil
}

func (l *Lists) each(found answer) (any, bool) {
	lists := map[string][]string{}
	for _, one := range found.blocks {
		lists[one.words[1]] = l.list(one.data)
	}
	return lists, found.blocks != nil
}

func stats(found answer) (any, bool) {
	values := map[string]string{}
	for _, one := range found.blocks {
		if len(one.words) > 1 {
			values[one.words[1]] = strings.Join(one.words[2:], " ")
		}
	}
	return values, found.blocks != nil
}
