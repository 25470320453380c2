# SPDX-License-Identifier: BSD-3-Clause
# frozen_string_literal: true

require 'socket'
require 'io/wait'

module Mclistd
  class Error < StandardError; end

  # The proxy's line of error. The connection goes on.
  class Refused < Error; end

  # No answer, or none that can be read: the request may have been done. The connection is closed,
  # and the next request makes a new one.
  class Lost < Error; end

  # The list verbs of mclistd: each is a method that has its name and takes its words.
  #
  #     lists = Mclistd::Lists.new('127.0.0.1:11220')
  #     lists.ladd('followers:ann', 'bob', 'carol smith')
  #     lists.lrevrange('followers:ann', 0, 9)         # ["carol smith", "bob"]
  #
  # A verb that answers with a word gives true, or false for NOT_STORED, NOT_FOUND and EXISTS; others
  # an Integer or an Array of items, nil for NOT_FOUND or NOT_STORED in their place. One connection,
  # which the first request makes; for one thread at a time.
  class Lists
    BATCH_BYTES = 16_384 # of a pipeline, sent before its answers are read: sockets take so many at once
    LINE_BYTES_MAX = 65_536
    WORD = /\A[^\x00-\x20\x7f]+\z/n
    SAYS = { 'STORED' => true, 'DELETED' => true, 'OK' => true, 'TOUCHED' => true,
             'NOT_STORED' => false, 'NOT_FOUND' => false, 'EXISTS' => false }.freeze
    LINES = %w[ladd ldel lset lrequire lrefuse].freeze # of a transaction

    class Broken < StandardError; end
    private_constant :Broken

    # address: HOST:PORT or the path of a unix socket. timeout: seconds for each wait. encoding: of
    # the items in answers. login: 'USER PASSWORD'. tls: an OpenSSL::SSL::SSLContext.
    def initialize(address = '127.0.0.1:11220', timeout: 3, delimiter: ',', encoding: 'UTF-8',
                   login: nil, tls: nil)
      @address, @timeout, @delimiter, @encoding = address, timeout, delimiter.b, encoding
      @login, @tls, @socket, @buffer = login, tls, nil, String.new
    end

    # --- changes ---

    def ladd(key, *items) = run_one(:done, change('ladd', key, items))
    def laddt(key, seconds, *items) = run_one(:done, change('laddt', key, items, " #{Integer(seconds)}"))
    def ldel(key, *items) = run_one(:done, change('ldel', key, items))
    def lset(key, *items) = ask(:done, 'lset', key, *items)
    def lcreate(key, *items) = ask(:done, 'lcreate', key, *items)
    def laddx(key, *items) = ask(:number, 'laddx', key, *some(items))
    def ldelx(key, *items) = ask(:number, 'ldelx', key, *some(items))

    # Items of any bytes. A token goes with an exptime.
    def lput(key, items, exptime = nil, token = nil, new = false)
      block = items.map { |item| 'ITEM x '.b + data(item) }.join
      tail = options([exptime, token], new)
      run_one(:done, line('lputb', key) + " #{block.bytesize}#{tail}\r\n".b + block + "\r\n")
    end

    def lcopy(src, dst, exptime = nil, new = false)
      run_one(:number, line('lcopy', src, dst) + options([exptime], new) + "\r\n")
    end

    def ltouch(key, exptime) = ask(:done, 'ltouch', key, Integer(exptime))
    def ldrop(key) = ask(:done, 'ldrop', key)
    def lpurge(key) = ask(:number, 'lpurge', key)
    def lcompact(key) = ask(:done, 'lcompact', key)
    def lconvert(key) = ask(:number, 'lconvert', key)
    def lmigrate(key) = ask(:done, 'lmigrate', key)

    # The token; 0: another client has the lease; nil: the list is there.
    def llease(key, seconds) = ask(:token, 'llease', key, Integer(seconds))

    # --- reads ---

    def lget(key) = ask(:items, 'lgetb', key)

    # [items, version]; nil: there are none.
    def lgets(key) = ask(:versioned, 'lgets', key)

    # key => items, of one instant; a list that is missing is left out.
    def lgetx(*keys) = ask(:each, 'lgetx', *some(keys))

    # Those of the items that are in the list.
    def lhas(key, *items)
      return ask(:items, 'lhas', key, *some(items)) unless items.size == 1

      run_one(:whole, line('lhasb', key) + ' ' + data(items[0]))
    end

    def llen(key) = ask(:number, 'llen', key)

    # Seconds, -1 for never.
    def lttl(key, item = nil)
      return ask(:number, 'lttl', key) if item.nil?

      run_one(:number, line('lttlb', key) + ' ' + data(item))
    end

    def lrange(key, from, to) = ask(:items, 'lrange', key, Integer(from), Integer(to))
    def lrevrange(key, from, to) = ask(:items, 'lrevrange', key, Integer(from), Integer(to))
    def lafter(key, item, count) = ask(:items, 'lafter', key, item, Integer(count))
    def lbefore(key, item, count) = ask(:items, 'lbefore', key, item, Integer(count))
    def lrandom(key, count) = ask(:items, 'lrandomb', key, Integer(count))
    def lstat(key) = ask(:stats, 'lstat', key)

    # The list in pages, from its oldest item or its newest. Each goes on behind the last item of the
    # one before, or the one before that, if it has left the list meanwhile. Without a block it
    # gives an Enumerator.
    def pages(key, count = 1000, newest = false)
      return enum_for(:pages, key, count, newest) unless block_given?

      page = newest ? lrevrange(key, 0, count - 1) : lrange(key, 0, count - 1)
      until page.empty?
        yield page
        page = following(newest ? :lbefore : :lafter, key, page, count)
      end
    end

    # --- several lists ---

    def linter(*keys) = ask(:items, 'linter', *some(keys))
    def lunion(*keys) = ask(:items, 'lunion', *some(keys))
    def ldiff(*keys) = ask(:items, 'ldiff', *some(keys))
    def linterlen(*keys) = ask(:number, 'linterlen', *some(keys))
    def lunionlen(*keys) = ask(:number, 'lunionlen', *some(keys))
    def ldifflen(*keys) = ask(:number, 'ldifflen', *some(keys))
    def linterstore(dst, *keys) = ask(:number, 'linterstore', dst, *some(keys))
    def lunionstore(dst, *keys) = ask(:number, 'lunionstore', dst, *some(keys))
    def ldiffstore(dst, *keys) = ask(:number, 'ldiffstore', dst, *some(keys))
    def lpop(key, count) = ask(:items, 'lpopb', key, Integer(count))
    def lpopto(src, dst, count) = ask(:items, 'lpoptob', src, dst, Integer(count))
    def lmove(src, dst, *items) = ask(:number, 'lmove', src, dst, *some(items))

    # Each a line: [verb, key, item, ...], the verb ladd, ldel, lset, lrequire or lrefuse.
    def ltx(*changes)
      block = changes.map do |verb, key, *items|
        raise ArgumentError, "'#{verb}' is no line of a transaction" unless LINES.include?(verb)

        verb == 'lset' ? line(verb, key, *items) + "\r\n" : change(verb, key, items)
      end.join
      run_one(:done, "ltx #{block.bytesize}\r\n".b + block + "\r\n")
    end

    # The same verbs, sent together by its run.
    def pipeline = Pipeline.new(self)

    def close
      @socket&.close
      @socket = nil
      @buffer.clear
    end

    # The result of each call, or its error. Behind the first that is lost, all are.
    # A Pipeline calls it.
    def run_all(calls)
      results = []
      known = 'nothing was sent'
      begin
        connect
        known = 'no answer, the outcome is unknown'
        batches(calls) do |batch|
          @socket.write(batch.map(&:last).join)
          batch.each { |shape, _| results << result(shape) }
        end
      rescue Broken, SystemCallError, SocketError, IOError, *tls_faults => error
        close
        results << Lost.new("#{known}: #{error.message}") while results.size < calls.size
      ensure
        close if results.size < calls.size # a late answer must not be taken for the next one
      end
      results
    end

    private

    # --- requests ---

    def line(verb, *words)
      words = words.map { |word| word.to_s.b }
      wrong = words.find { |word| !word.match?(WORD) }
      raise ArgumentError, "no key, nor an item that can stand beside others: #{wrong[0, 80].inspect}" if wrong

      [verb.b, *words].join(' ')
    end

    def data(item) = "#{item.bytesize}\r\n".b + item.b + "\r\n"

    def some(words)
      raise ArgumentError, 'nothing is named' if words.empty?

      words
    end

    # One item may have any bytes.
    def change(verb, key, items, seconds = '')
      return line("#{verb}b", key) + seconds + ' ' + data(items[0]) if items.size == 1

      line(verb, key, *seconds.split, *some(items)) + "\r\n"
    end

    def options(numbers, new) = numbers.compact.map { |number| " #{Integer(number)}" }.join + (new ? ' new' : '')

    def ask(shape, verb, *words) = run_one(shape, line(verb, *words) + "\r\n")

    def run_one(shape, request)
      result, = run_all([[shape, request]])
      result.is_a?(Error) ? raise(result) : result
    end

    def batches(calls)
      batch, bytes = [], 0
      calls.each do |call|
        if batch.any? && bytes + call.last.bytesize > BATCH_BYTES
          yield batch
          batch, bytes = [], 0
        end
        batch << call
        bytes += call.last.bytesize
      end
      yield batch if batch.any?
    end

    def following(verb, key, page, count)
      (page.size - 1).downto(0) do |at|
        next unless page[at].b.match?(WORD)

        behind = page.drop(at + 1)
        found = send(verb, key, page[at], count + behind.size)
        return (found - behind).first(count) if found
      end
      raise Error, 'no item of the last page can say where the next one begins'
    end

    # --- the connection ---

    def connect
      close if @socket && @buffer.empty? && @socket.to_io.wait_readable(0) # the proxy has closed it
      return if @socket

      @socket = open_socket
      return unless @login

      @socket.write('set login 0 0 ' + data(@login))
      raise Broken, 'the login was refused' unless answer == 'STORED'
    end

    def open_socket
      return UNIXSocket.new(@address) if @address.start_with?('/')

      host, _, port = @address.rpartition(':')
      socket = TCPSocket.new(host.delete('[]'), port, connect_timeout: @timeout)
      socket.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
      return socket unless @tls

      OpenSSL::SSL::SSLSocket.new(socket, @tls).tap do |encrypted|
        encrypted.hostname = host
        encrypted.sync_close = true
        encrypted.connect
      end
    end

    def tls_faults = @tls ? [OpenSSL::SSL::SSLError] : []

    def more
      data = @socket.read_nonblock(65_536, exception: false)
      case data
      when :wait_readable, :wait_writable then @socket.to_io.wait_readable(@timeout) || raise(Broken, 'no answer in time')
      when nil then raise Broken, 'the proxy has closed the connection'
      else @buffer << data
      end
    end

    # So many bytes, and the line end behind them, which is not returned.
    def take(size)
      more while @buffer.bytesize < size + 2
      data = @buffer.slice!(0, size + 2)
      raise Broken, 'the answer is out of step' unless data.end_with?("\r\n")

      data[0...-2]
    end

    def read_line
      searched = 0
      until (size = @buffer.index("\r\n", searched))
        raise Broken, 'a line of the answer is too long' if @buffer.bytesize > LINE_BYTES_MAX

        searched = [@buffer.bytesize - 1, 0].max
        more
      end
      take(size)
    end

    # A line; or the blocks before END, each the words of its line and its data.
    def answer
      blocks = []
      loop do
        text = read_line
        words = text.split
        case words[0]
        when 'ERROR', 'CLIENT_ERROR', 'SERVER_ERROR' then raise Refused, text.force_encoding('UTF-8')
        when 'END' then return blocks
        when 'VALUE', 'ITEM' then blocks << [words, take(size_of(words))]
        when 'STAT' then blocks << [text.split(' ', 3), '']
        else
          return text if blocks.empty?

          raise Broken, 'a line that is no part of this answer'
        end
      end
    end

    def size_of(words)
      size = words[words[0] == 'VALUE' ? 3 : 2].to_s
      size.match?(/\A\d{1,10}\z/) ? size.to_i : raise(Broken, 'no length of data')
    end

    def result(shape)
      found = answer
      return if found == 'NOT_FOUND' && shape == :items

      raise Broken, "#{found} is no answer to this" if found.is_a?(Array) == %i[done number token].include?(shape)

      send(:"read_#{shape}", found)
    rescue Refused => error
      error
    end

    # --- shapes of answers ---

    def read_done(text) = SAYS.fetch(text) { raise Broken, "#{text} is no answer to this" }

    def read_number(text)
      return if %w[NOT_FOUND NOT_STORED].include?(text)

      text.match?(/\A-?\d+\z/) ? text.to_i : raise(Broken, "#{text} is no answer to this")
    end

    def read_token(text)
      text == 'NOT_STORED' ? 0 : text == 'EXISTS' ? nil : read_number(text)
    end

    def text_of(data) = data.force_encoding(@encoding)
    def split(data) = data.split(@delimiter, -1).map { |item| text_of(item) }
    def read_whole(blocks) = blocks.map { |_, data| text_of(data) }
    def read_items(blocks) = blocks.flat_map { |words, data| words[0] == 'ITEM' ? [text_of(data)] : split(data) }
    def read_versioned(blocks) = blocks.empty? ? nil : [split(blocks[0][1]), blocks[0][0][4].to_i]
    def read_each(blocks) = blocks.to_h { |words, data| [text_of(words[1]), split(data)] }
    def read_stats(blocks) = blocks.to_h { |words, _| [words[1], words[2].to_s] }
  end

  # Its verbs give nothing; run gives the result of each, or the Error in its place. Up to 16 KB of
  # requests are under way at a time, so that neither side waits for the other.
  class Pipeline < Lists
    def initialize(lists)
      @lists, @calls = lists, []
    end

    def run
      calls, @calls = @calls, []
      @lists.run_all(calls)
    end

    private

    def run_one(shape, request)
      @calls << [shape, request]
      nil
    end
  end
end
