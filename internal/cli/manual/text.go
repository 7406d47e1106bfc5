package manual

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// lineWidth is how long lines of help text get, in characters.
const lineWidth = 100

var (
	link = regexp.MustCompile(`\[([^]]*)\]\([^)]*\)`)
	code = regexp.MustCompile("`([^`]*)`")
)

// Text writes a page for a terminal. Of Markdown it knows what the topics use: headings, paragraphs, tables, lists,
// fenced blocks, links and code.
func Text(markdown string) string {
	var out strings.Builder
	for _, b := range blocks(markdown) {
		if out.Len() > 0 {
			out.WriteString("\n")
		}
		switch b.kind {
		case heading:
			out.WriteString(strings.ToUpper(plain(b.lines[0])) + "\n")
		case table:
			writeTable(&out, b.rows())
		case fenced:
			for _, l := range b.lines {
				out.WriteString("    " + l + "\n")
			}
		case list:
			for _, item := range b.lines {
				hang(&out, "  - ", plain(item))
			}
		case paragraph:
			hang(&out, "", plain(strings.Join(b.lines, " ")))
		}
	}
	return out.String()
}

// plain takes the marks of links and code away.
func plain(s string) string {
	return code.ReplaceAllString(link.ReplaceAllString(s, "$1"), "$1")
}

// hang writes a text in lines of lineWidth, the first behind lead, the others under it.
func hang(out *strings.Builder, lead, text string) {
	indent := strings.Repeat(" ", utf8.RuneCountInString(lead))
	for _, line := range wrapped(text, lineWidth-len(indent)) {
		out.WriteString(lead + line + "\n")
		lead = indent
	}
}

// wrapped breaks a text at spaces into lines of at most width characters; a longer word has a line of its own.
func wrapped(text string, width int) []string {
	var lines []string
	for _, word := range strings.Fields(text) {
		last := len(lines) - 1
		if last >= 0 && utf8.RuneCountInString(lines[last])+1+utf8.RuneCountInString(word) <= width {
			lines[last] += " " + word
			continue
		}
		lines = append(lines, word)
	}
	return lines
}

// writeTable writes rows under each other, the first being the names of the columns. A column is as wide as its longest
// cell, or as its share of what the columns before it leave of the line.
func writeTable(out *strings.Builder, rows [][]string) {
	widths := make([]int, len(rows[0]))
	left := lineWidth - 2*len(widths)
	for i := range widths {
		for _, r := range rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(plain(r[i])))
		}
		if i > 0 {
			widths[i] = min(widths[i], left/(len(widths)-i))
		}
		left -= widths[i]
	}
	for _, r := range rows {
		cells := make([][]string, len(widths))
		height := 0
		for i := range widths {
			cells[i] = wrapped(plain(r[i]), widths[i])
			height = max(height, len(cells[i]))
		}
		for n := range height {
			line := ""
			for i, c := range cells {
				text := ""
				if n < len(c) {
					text = c[n]
				}
				line += "  " + text + strings.Repeat(" ", max(widths[i]-utf8.RuneCountInString(text), 0))
			}
			out.WriteString(strings.TrimRight(line, " ") + "\n")
		}
	}
}

// What a block is.
type blockKind int

const (
	paragraph blockKind = iota
	heading
	table
	list
	fenced
)

// block is a part of a page; lines are without the marks of its kind.
type block struct {
	lines []string
	kind  blockKind
	level int // of a heading, from 1
}

// blocks takes a page apart.
func blocks(markdown string) []block {
	var all []block
	var open block
	end := func() {
		if len(open.lines) > 0 {
			all = append(all, open)
		}
		open = block{}
	}
	add := func(kind blockKind, line string) {
		if open.kind != kind {
			end()
		}
		open.kind, open.lines = kind, append(open.lines, line)
	}
	for _, line := range strings.Split(markdown, "\n") {
		switch {
		case strings.HasPrefix(line, "```") && open.kind == fenced:
			end()
		case strings.HasPrefix(line, "```"):
			end()
			open.kind = fenced
		case open.kind == fenced:
			open.lines = append(open.lines, line)
		case strings.TrimSpace(line) == "":
			end()
		case strings.HasPrefix(line, "#"):
			end()
			words := strings.TrimLeft(line, "#")
			all = append(all, block{kind: heading, level: len(line) - len(words), lines: []string{strings.TrimSpace(words)}})
		case strings.HasPrefix(line, "|"):
			add(table, line)
		case strings.HasPrefix(line, "- "):
			add(list, line[2:])
		case strings.HasPrefix(line, "  ") && open.kind == list:
			open.lines[len(open.lines)-1] += " " + strings.TrimSpace(line)
		default:
			add(paragraph, line)
		}
	}
	end()
	return all
}

// rows returns the cells of a table without the line under its head. A bar inside a cell is written \|.
func (b block) rows() [][]string {
	var all [][]string
	for i, line := range b.lines {
		if i == 1 {
			continue
		}
		line = strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(line, "|"), "|"), `\|`, "\x00")
		cells := strings.Split(line, "|")
		for j, c := range cells {
			cells[j] = strings.TrimSpace(strings.ReplaceAll(c, "\x00", "|"))
		}
		all = append(all, cells)
	}
	return all
}
