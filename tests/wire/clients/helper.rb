# SPDX-License-Identifier: BSD-3-Clause
# Calls scripts/clients/ruby as the lines of its input say; README.md has their words.
require_relative 'mclistd'

def argument(word)
  rest = word[1..]
  case word[0]
  when 'l' then rest.split(',').map { |hex| [hex].pack('H*') }
  when 's' then [rest].pack('H*')
  when 'i' then rest.to_i
  else word[0] == 't' ? true : nil
  end
end

def shown(value, name = nil)
  case value
  when nil then 'null'
  when true, false then value.to_s
  when Integer then "i#{value}"
  when String then "s#{value.unpack1('H*')}"
  when Mclistd::Refused then "refused:#{value.message.unpack1('H*')}"
  when Mclistd::Lost then 'lost'
  when Mclistd::Error then 'moved'
  when Exception then 'bad'
  when Hash then "{#{value.map { |pair| pair.map { |one| shown(one) }.join('=') }.join(' ')}}"
  when Array then name == 'lgets' ? value.map { |one| shown(one) }.join('@') : "[#{value.map { |one| shown(one) }.join(' ')}]"
  end
end

$stdout.sync = true
lists = pipe = nil
$stdin.each_line do |line|
  name, *args = line.split
  args = args.map { |word| argument(word) }
  begin
    value = nil
    case name
    when 'open' then lists = Mclistd::Lists.new("127.0.0.1:#{args[0]}", timeout: args[1] / 1000.0, delimiter: args[2], login: args[3])
    when 'pipeline' then pipe = lists.pipeline
    when 'run' then value, pipe = pipe.run, nil
    when 'pages' then value = lists.pages(*args).to_a
    else value = (pipe || lists).public_send(name, *args)
    end
  rescue Mclistd::Error, ArgumentError => error
    value = error
  end
  puts shown(value, name)
end
