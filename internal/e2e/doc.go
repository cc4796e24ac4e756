// Package e2e builds the foldhost binary and runs it, as a person or a program would. It holds tests only.
package e2e
