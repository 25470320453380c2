# SPDX-License-Identifier: BSD-3-Clause
# Adds the items that it is told, as hex, with the helper of docs/clients/ruby.md.
require_relative 'lists'

lists = Lists.new('127.0.0.1', $stdin.gets.to_i)
$stdin.each_line do |line|
  key, item = line.chomp.split(/ /, -1).map { |hex| [hex].pack('H*') }
  puts lists.add(key, item) ? 'stored' : 'not'
rescue ArgumentError, RuntimeError
  puts 'refused'
end
lists.items('hostile').each { |item| puts item.unpack1('H*') }
