module scenario

go 1.26
