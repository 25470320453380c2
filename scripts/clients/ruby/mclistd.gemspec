# SPDX-License-Identifier: BSD-3-Clause
Gem::Specification.new do |gem|
  gem.name = 'mclistd'
  gem.version = '0.2.0'
  gem.summary = 'The list verbs of mclistd, ordered sets in memcached'
  gem.authors = ['The authors of mclistd']
  gem.license = 'BSD-3-Clause'
  gem.files = ['mclistd.rb', 'README.md']
  gem.require_paths = ['.']
  gem.required_ruby_version = '>= 3.0'
end
