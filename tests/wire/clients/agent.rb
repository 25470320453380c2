# SPDX-License-Identifier: BSD-3-Clause
# Ruby's dalli as an agent (README.md): "dalli" as it is, of Debian 12 with the binary protocol; "meta"
# with the text protocol and raw values. "text" is raw and without compression.
require 'dalli'

Dalli.logger.level = Logger::FATAL
name, setting, *servers = ARGV
options = { socket_timeout: 20 }
options.update(protocol: :meta) if name == 'meta'
options.update(compress: false) if setting == 'text'
how = { raw: name == 'meta' || setting == 'text' }
client = Dalli::Client.new(servers, options)
versions = {}
$stdout.sync = true

$stdin.each_line do |line|
  verb, key, text = line.chomp.gsub('<CRLF>', "\r\n").split("\t", -1)
  begin
    result =
      case verb
      when 'get', 'delete' then client.send(verb, key)
      when 'touch' then client.touch(key, text.to_i)
      when 'cas' then client.set_cas(key, text, versions[key], nil, how)
      when 'set', 'add', 'replace' then client.send(verb, key, text, nil, how)
      when 'gets'
        value, versions[key] = client.get_cas(key)
        value
      else client.send(verb, key, text)
      end
    reads = verb.start_with?('get')
    puts(reads ? (result.nil? ? 'miss' : "is #{result}") : (result ? 'yes' : 'no'))
  rescue NoMethodError
    puts 'no such call'
  rescue StandardError => e
    puts "error #{e.class}: #{e.message}".tr("\n", ' ')
  end
end
