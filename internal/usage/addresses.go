package usage

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// Addresses is the value of a flag: one or more of host:port, with commas or spaces between. An empty list is refused, so
// that a variable that is empty by mistake does not lead to another cluster.
type Addresses []string

// String returns the addresses with commas.
func (a *Addresses) String() string { return strings.Join(*a, ",") }

// Type is the kind of value, for help.
func (a *Addresses) Type() string { return "addresses" }

// Set reads the value.
func (a *Addresses) Set(text string) error {
	list := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
	if len(list) == 0 {
		return errors.New("no address; give host:port, several with commas")
	}
	for _, address := range list {
		if strings.Trim(strconv.Quote(address), `"`) != address || !wellFormed(address) {
			return fmt.Errorf("%q is not host:port", address)
		}
	}
	*a = list
	return nil
}

// wellFormed reports whether address is a host, with or without a port of 1 to 65535.
func wellFormed(address string) bool {
	if !strings.Contains(address, ":") || net.ParseIP(address) != nil {
		return true
	}
	host, port, err := net.SplitHostPort(address)
	n, bad := strconv.ParseUint(port, 10, 16)
	return err == nil && bad == nil && host != "" && n > 0
}
