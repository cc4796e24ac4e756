// Package config reads foldhost.yaml: where the data and the plugins lie, and what the operator says about each plugin.
//
// It parses and resolves, and decides nothing: whether a plugin exists, and whether its config passes its schema, is
// host's to find out. A file is either read whole or refused with every problem that was found, each with line and column. The package
// holds no state; a File is not changed once it is returned.
package config
