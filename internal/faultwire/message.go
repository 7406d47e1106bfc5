package faultwire

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
)

// Codes in place of a protocol version.
const (
	cancelCode = 80877102
	sslCode    = 80877103
	gssCode    = 80877104
)

const maxMessage = 1 << 30

// message is one message with its header. A startup message has no type byte.
type message []byte

// readMessage reads one message.
func readMessage(r *bufio.Reader, typed bool) (message, error) {
	header := make([]byte, 4, 5)
	if typed {
		header = header[:5]
	}
	if _, err := io.ReadFull(r, header); err != nil {
		return nil, err
	}
	length := binary.BigEndian.Uint32(header[len(header)-4:])
	if length < 4 || length > maxMessage {
		return nil, fmt.Errorf("read message: length %d", length)
	}
	m := append(header, make([]byte, length-4)...)
	_, err := io.ReadFull(r, m[len(header):])
	return m, err
}

// code returns the version or request code of a startup message.
func (m message) code() uint32 {
	if len(m) < 8 {
		return 0
	}
	return binary.BigEndian.Uint32(m[4:])
}

func (m message) kind() byte { return m[0] }

// text returns the string after n other strings of a typed message.
func (m message) text(n int) string {
	rest := m[5:]
	for range n {
		_, rest, _ = bytes.Cut(rest, []byte{0})
	}
	s, _, _ := bytes.Cut(rest, []byte{0})
	return string(s)
}

// newMessage makes a typed message.
func newMessage(kind byte, body []byte) message {
	m := message{kind}
	m = binary.BigEndian.AppendUint32(m, uint32(len(body)+4))
	return append(m, body...)
}

// notReplicated is the warning of a server that committed and could not wait for its standby.
func notReplicated() message {
	return newMessage('N', []byte("SWARNING\x00VWARNING\x00C01000\x00Mcanceling wait for synchronous replication due to user request\x00\x00"))
}

const maxLabel = 60

// Label makes a short name of a text of SQL: without comments and white space, its beginning.
func Label(sql string) string {
	var words []string
	for line := range strings.Lines(sql) {
		if code, _, _ := strings.Cut(line, "--"); strings.TrimSpace(code) != "" {
			words = append(words, strings.Fields(code)...)
		}
	}
	s := strings.Join(words, " ")
	if s == "" {
		s = strings.TrimSpace(sql)
	}
	if len(s) > maxLabel {
		s = s[:maxLabel]
	}
	return s
}
