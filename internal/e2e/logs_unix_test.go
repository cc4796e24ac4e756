//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestWhatAServerLogs: given plugins that say evil things and a unit that fails with them, every record is one, in either form: nothing in it steers a terminal or looks like a record of the
// server's, and what failed where stands in fields. What plugins are called and write breaks the metrics neither.
func TestWhatAServerLogs(t *testing.T) {
	wrong := filepath.Join(t.TempDir(), "wrongplugin")
	cmd := exec.Command("go", "build", "-o", wrong, "./host/internal/wrongplugin")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	const name, harmless = "evil\x1b[2J\n2026-12-01T00:00:00.000Z [ERROR]", `evil\x1b[2J` + "\n2026-12-01T00:00:00.000Z [ERROR]"
	var yaml strings.Builder
	fmt.Fprintf(&yaml, "plugins:\n  %s: {command: %s}\n", quoteYAML(name), wrong)
	for i, mode := range []string{"evil", "evil-describe", "evil-problem", "evil-greeting"} {
		fmt.Fprintf(&yaml, "  p%d: {command: %s, args: [%s, prefix=p%d/]}\n", i, wrong, mode, i)
	}
	config := write(t, "host.yaml", yaml.String())
	for _, format := range []string{"json", "text"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			s := serve(t, filepath.Join(t.TempDir(), "data"), "--config", config, "--plugins", t.TempDir(), "--log-format", format, "--log-level", "trace")
			s.do("POST", "/v1/sessions", `{"id":"s"}`)
			s.do("POST", "/v1/sessions/s/events", `{"events":[{"type":"step","data":{"n":1}},{"type":"poison","data":{"how":"evil"}}]}`)
			for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
				if _, text := s.do("GET", "/v1/sessions/s/projections", ""); strings.Count(text, `"faulted"`) == 2 {
					break
				}
				if time.Now().After(deadline) {
					t.Fatal("what should fail does not")
				}
			}
			status, metrics := s.do("GET", "/metrics", "")
			if status != 200 || !strings.Contains(metrics, `plugin="evil`) || !strings.Contains(metrics, "\nfoldhost_unit_faults_total{") {
				t.Errorf("%d: %s", status, metrics)
			}
			s.kill()
			log := s.stderr.String()
			if format == "text" {
				steers(t, "stderr", log)
				record := regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(Z|[+-]\d\d:\d\d) \[(TRACE|DEBUG|INFO|WARN|ERROR)\] +\S`)
				for line := range strings.Lines(log) {
					if !record.MatchString(line) && !strings.HasPrefix(line, "  ") {
						t.Errorf("this is no record: %q", line)
					}
				}
				if !regexp.MustCompile(`\[WARN\]  a unit failed .*: session=s plugin="evil.*" unit=count seq=1 `).MatchString(log) {
					t.Errorf("the fault is not there: %s", log)
				}
				return
			}
			faults, requests, written := 0, 0, 0
			for line := range strings.Lines(log) {
				var o map[string]any
				if err := json.Unmarshal([]byte(line), &o); err != nil {
					t.Errorf("%q: %v", line, err)
					continue
				}
				steers(t, "stderr", line)
				switch {
				case strings.HasPrefix(fmt.Sprint(o["@message"]), "a unit failed"):
					faults++
					if who := fmt.Sprint(o["plugin"], " ", o["unit"]); o["session"] != "s" || o["seq"] != 1.0 || who != harmless+" count" && who != "p0 p0/count" || o["reason"] == nil {
						t.Errorf("%s", line)
					}
				case o["@message"] == "a request was served" && o["session"] == "s":
					requests++
				case o["stream"] != nil:
					written++
					if o["plugin"] == nil {
						t.Errorf("%s", line)
					}
				}
			}
			if faults != 2 || requests < 2 || written == 0 {
				t.Errorf("%d faults, %d requests, %d lines of plugins: %s", faults, requests, written, log)
			}
		})
	}
}
