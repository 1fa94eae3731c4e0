package pullet

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
)

// explain says of an error of opening a path what it is here, and what to do. It looks at the
// directory again; what it says may have changed meanwhile.
func explain(err error, path string, isName bool) error {
	var e *Error
	switch {
	case errors.Is(err, fs.ErrPermission):
		return &Error{Path: path, Err: err, Detail: whoMayRead(path)}
	case errors.Is(err, ErrNotPublished) && !errors.Is(err, ErrWithdrawn) && isName && errors.As(err, &e):
		return &Error{Path: path, Err: e.Err, Detail: published(path)}
	}
	return err
}

// runtimeDir is where names are looked for.
func runtimeDir() string {
	if dir := os.Getenv("PULLET_RUNTIME_DIR"); dir != "" {
		return dir
	}
	return "/run/pullet"
}

// whyEmpty says why nothing is open of a path.
func whyEmpty(path string, withdrawn bool) string {
	switch {
	case withdrawn:
		return "withdrawn: the agent publishes this config no more, for it was removed or says `snapshot: false`"
	case filepath.Dir(path) == filepath.Clean(runtimeDir()):
		return "nothing is published: " + published(path)
	}
	return "nothing is published: there is no snapshot at this path"
}

// ownAgents is the directory in which an agent that this user has started publishes it, or "".
func ownAgents(file string) string {
	if os.Getenv("PULLET_RUNTIME_DIR") != "" || os.Geteuid() == 0 {
		return ""
	}
	for _, dir := range []string{
		os.Getenv("XDG_RUNTIME_DIR") + "/pullet", fmt.Sprintf("/run/user/%d/pullet", os.Geteuid()),
		os.Getenv("XDG_STATE_HOME") + "/pullet-run", os.Getenv("HOME") + "/.local/state/pullet-run",
	} {
		if _, err := os.Stat(filepath.Join(dir, file)); err == nil && filepath.IsAbs(dir) {
			return dir
		}
	}
	return ""
}

// published says what there is in place of a snapshot.
func published(path string) string {
	const few, mostRead = 4, 4096
	dir, wrong := filepath.Dir(path), strings.TrimSuffix(filepath.Base(path), ".snap")
	if own := ownAgents(filepath.Base(path)); own != "" {
		return "your own agent publishes it in " + own + ": set PULLET_RUNTIME_DIR=" + own
	}
	d, err := os.Open(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err.Error()
	}
	if err != nil {
		return "there is no directory " + dir + ": is the agent running? PULLET_RUNTIME_DIR names another one"
	}
	defer d.Close()
	files, err := d.Readdirnames(mostRead)
	if err != nil && err != io.EOF {
		return err.Error()
	}
	var names []string
	for _, file := range files {
		name := strings.TrimSuffix(file, ".snap")
		if name == file || !isName(name) || name == wrong {
			continue
		}
		if len(wrong) >= 3 && isNear(name, wrong) {
			return "did you mean '" + name + "'?"
		}
		names = append(names, name)
	}
	switch {
	case len(names) == 0:
		return "nor under any name: is the agent running?"
	case len(names) > few:
		return "'pullet status --names' lists what there is"
	}
	return "there is " + strings.Join(names, ", ")
}

// whoMayRead names the group of a file, or of the directory around it that is closed.
func whoMayRead(path string) string {
	st, err := os.Stat(path)
	for err != nil && path != "/" && path != "." {
		path = filepath.Dir(path)
		st, err = os.Stat(path)
	}
	if err == nil {
		may := fs.FileMode(0o040)
		if st.IsDir() {
			may = 0o010
		}
		if sys, ok := st.Sys().(*syscall.Stat_t); ok && sys.Gid != 0 && st.Mode()&may != 0 {
			group := fmt.Sprint(sys.Gid)
			if g, err := user.LookupGroupId(group); err == nil {
				group = g.Name
			}
			return fmt.Sprintf("%s may be read by the group %s only: add this program's user to it (usermod -aG %s USER), and start the program again",
				path, group, group)
		}
	}
	return path + " may be read by root and the agent's user only"
}
