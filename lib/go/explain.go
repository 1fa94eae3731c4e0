package pullet

import (
	"errors"
	"fmt"
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

// published says what there is in place of a snapshot.
func published(path string) string {
	const few, mostRead = 4, 4096
	dir, wrong := filepath.Dir(path), strings.TrimSuffix(filepath.Base(path), ".snap")
	d, err := os.Open(dir)
	if err != nil {
		return "there is no directory " + dir + ": is the agent running? PULLET_RUNTIME_DIR names another one"
	}
	defer d.Close()
	files, _ := d.Readdirnames(mostRead)
	var names []string
	for _, file := range files {
		name := strings.TrimSuffix(file, ".snap")
		if name == file || !isName(name) || name == wrong {
			continue
		}
		if isNear(name, wrong) {
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
	return "there is: " + strings.Join(names, ", ")
}

// whoMayRead names the group of a file, or of the directory around it that is closed.
func whoMayRead(path string) string {
	st, err := os.Stat(path)
	for err != nil && path != "/" && path != "." {
		path = filepath.Dir(path)
		st, err = os.Stat(path)
	}
	if err == nil {
		if sys, ok := st.Sys().(*syscall.Stat_t); ok && sys.Gid != 0 {
			if g, err := user.LookupGroupId(fmt.Sprint(sys.Gid)); err == nil {
				return fmt.Sprintf("%s may be read by the group %s only: add this program's user to it (usermod -aG %s USER), and start the program again",
					path, g.Name, g.Name)
			}
		}
	}
	return path + " may be read by root and the agent's user only"
}
