// Command fuzz runs every fuzz target of the module, one after the other, each for a short time or a number of inputs.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

func main() {
	each := flag.String("time", "10s", "how long each target runs, or for how many inputs, such as 3000x")
	flag.Parse()
	if err := run(*each); err != nil {
		fmt.Fprintln(os.Stderr, "fuzz:", err)
		os.Exit(1)
	}
}

func run(each string) error {
	pkgs, err := packages()
	if err != nil {
		return err
	}
	n := 0
	for _, pkg := range pkgs {
		targets, err := targets(pkg)
		if err != nil {
			return err
		}
		// The go command fuzzes one target at a time.
		for _, t := range targets {
			fmt.Printf("== %s %s\n", pkg, t)
			cmd := exec.Command("go", "test", "-run=^$", "-fuzz=^"+t+"$", "-fuzztime="+each, pkg)
			cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
			if err := cmd.Run(); err != nil {
				return fmt.Errorf("%s in %s: %w", t, pkg, err)
			}
			n++
		}
	}
	if n == 0 {
		return fmt.Errorf("no fuzz target found: is this the root of the module?")
	}
	fmt.Printf("%d fuzz targets, %s each: nothing found\n", n, each)
	return nil
}

// packages lists the packages whose tests mention a fuzz target; listing the others would only compile them.
func packages() ([]string, error) {
	out, err := exec.Command("go", "list", "-f", "{{.ImportPath}}\t{{.Dir}}\t{{join .TestGoFiles \" \"}} {{join .XTestGoFiles \" \"}}", "./...").Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var pkgs []string
	for line := range strings.Lines(string(out)) {
		part := strings.SplitN(strings.TrimSpace(line), "\t", 3)
		if len(part) < 3 {
			continue
		}
		for _, f := range strings.Fields(part[2]) {
			src, err := os.ReadFile(part[1] + string(os.PathSeparator) + f)
			if err != nil {
				return nil, err
			}
			if strings.Contains(string(src), "\nfunc Fuzz") {
				pkgs = append(pkgs, part[0])
				break
			}
		}
	}
	return pkgs, nil
}

func targets(pkg string) ([]string, error) {
	out, err := exec.Command("go", "test", "-list=^Fuzz", pkg).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("go test -list in %s: %w\n%s", pkg, err, out)
	}
	var names []string
	for line := range strings.Lines(string(out)) {
		if name := strings.TrimSpace(line); strings.HasPrefix(name, "Fuzz") {
			names = append(names, name)
		}
	}
	return names, nil
}
