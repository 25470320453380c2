# SPDX-License-Identifier: BSD-3-Clause
# Ruby's dalli as an agent (README.md).
require 'dalli'
Dalli.logger.level = Logger::FATAL
client = Dalli::Client.new(ARGV.drop(2), socket_timeout: 20)
$stdout.sync = true

$stdin.each_line do |line|
  verb, key, text = line.chomp.gsub('<CRLF>', "\r\n").split("\t", -1)
  begin
    result = %w[get delete].include?(verb) ? client.send(verb, key) : client.send(verb, key, text)
    puts(verb != 'get' ? (result ? 'yes' : 'no') : result.nil? ? 'miss' : "is #{result}")
  rescue StandardError => e
    puts "error #{e.class}: #{e.message}".tr("\n", ' ')
  end
end
