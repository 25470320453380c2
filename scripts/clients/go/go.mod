module mclistd

go 1.18
