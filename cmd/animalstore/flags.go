package main

import "animalstore/internal/commandline"

var (
	variable      = commandline.Variable
	given         = commandline.Given
	usagef        = commandline.Usagef
	noArguments   = commandline.NoArguments
	oneID         = commandline.OneID
	jsonFlag      = commandline.RegisterJSON
	newPrinter    = commandline.NewPrinter
	completeFlag  = commandline.CompleteFlag
	completeFiles = commandline.CompleteFiles
)
