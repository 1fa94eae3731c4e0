module pullet

go 1.19
