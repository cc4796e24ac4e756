package launch

import (
	"slices"
	"strings"
)

// allowed are the variables of the host that a plugin gets. Everything else may be a secret. Proxy variables are left out
// since they may hold passwords; an operator who wants them adds them to the plugin's own.
var allowed = []string{"PATH", "HOME", "TMPDIR", "TZ", "LANG", "LANGUAGE", "USER", "LOGNAME", "SHELL", "SSL_CERT_FILE", "SSL_CERT_DIR"}

// allowedOnWindows: programs do not start, or find no place for files, without them.
var allowedOnWindows = []string{"SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "TEMP", "TMP", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "PATH"}

// environment is what a plugin process gets: what is allowed of the host's, then the plugin's own, which wins, then what the
// protocol needs, which nobody overrides. A name comes once.
func environment(host, own, protocol []string, goos string) []string {
	out := make([]string, 0, len(allowed)+len(own)+len(protocol))
	at := map[string]int{}
	set := func(kv string) {
		name, _, ok := strings.Cut(kv, "=")
		if !ok || name == "" || strings.ContainsRune(kv, 0) {
			return
		}
		if goos == "windows" {
			name = strings.ToUpper(name)
		}
		if i, there := at[name]; there {
			out[i] = kv
			return
		}
		at[name] = len(out)
		out = append(out, kv)
	}
	for _, kv := range host {
		name, _, _ := strings.Cut(kv, "=")
		if isAllowed(name, goos) {
			set(kv)
		}
	}
	for _, kv := range own {
		set(kv)
	}
	for _, kv := range protocol {
		set(kv)
	}
	return out
}

func isAllowed(name, goos string) bool {
	if goos == "windows" && slices.Contains(allowedOnWindows, strings.ToUpper(name)) {
		return true
	}
	return slices.Contains(allowed, name) || strings.HasPrefix(name, "LC_")
}
