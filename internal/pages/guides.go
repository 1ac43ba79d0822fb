package pages

import (
	"bytes"
	"cmp"
	"fmt"
	"html/template"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// guidesPath is the path of the guides. Each is below it, under its file name without
// .md.
const guidesPath = "/docs/guides"

// guideOrder is the reading order. Guides that aren't listed come last.
var guideOrder = []string{"quickstart", "callers", "webhooks", "assistants", "operations", "scaling", "contract", "performance"}

// markdown renders guides, and descriptions in the OpenAPI document.
var markdown = goldmark.New(
	goldmark.WithExtensions(extension.Table),
	goldmark.WithParserOptions(parser.WithAutoHeadingID()),
	goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(blockRenderer{}, 1))),
)

// addGuides adds the pages of all guides and of their index.
func (p *Pages) addGuides() {
	index := fixed{readPolicy, sync.OnceValue(func() *content { return newContent(typeHTML, p.renderIndex("Guides")) })}
	p.fixed[guidesPath], p.fixed[guidesPath+"/"] = index, index
	err := fs.WalkDir(p.Guides, ".", func(file string, _ fs.DirEntry, err error) error {
		if name, ok := strings.CutSuffix(file, ".md"); ok {
			p.fixed[guidePath(name)] = fixed{readPolicy, sync.OnceValue(func() *content { return p.renderGuide(name) })}
		}
		return err
	})
	if err != nil {
		panic(err) // the files are embedded
	}
}

func guidePath(name string) string { return guidesPath + "/" + name }

// guide is one Markdown file.
type guide struct {
	Path  string
	Title string
	About string // the first sentence
	doc   ast.Node
	file  []byte
}

func (p *Pages) readGuide(name string) guide {
	file, err := fs.ReadFile(p.Guides, name+".md")
	if err != nil {
		panic(err) // the file is embedded
	}
	g := guide{Path: guidePath(name), doc: markdown.Parser().Parse(text.NewReader(file)), file: file}
	for n := g.doc.FirstChild(); n != nil && g.About == ""; n = n.NextSibling() {
		switch n.Kind() {
		case ast.KindHeading:
			g.Title = cmp.Or(g.Title, plainText(n, file))
		case ast.KindParagraph:
			sentence, _, more := strings.Cut(plainText(n, file), ". ")
			g.About = strings.TrimSuffix(sentence, ".")
			if more || g.About != "" {
				g.About += "."
			}
		}
	}
	return g
}

// topGuides are the guides most readers need, in reading order.
func (p *Pages) topGuides() (all []guide) {
	names, err := fs.Glob(p.Guides, "*.md")
	if err != nil {
		panic(err) // the pattern is valid
	}
	position := func(name string) int {
		if i := slices.Index(guideOrder, strings.TrimSuffix(name, ".md")); i >= 0 {
			return i
		}
		return len(guideOrder)
	}
	slices.SortStableFunc(names, func(a, b string) int { return position(a) - position(b) })
	for _, name := range names {
		all = append(all, p.readGuide(strings.TrimSuffix(name, ".md")))
	}
	return all
}

// guideFrame is the data of a page with the guides next to it.
type guideFrame struct {
	page
	Path     string // of the guide that is shown; "" if it is none of Guides
	Guides   []guide
	Sections []section // of that guide
}

func (p *Pages) guideFrame(of page) guideFrame { return guideFrame{page: of, Guides: p.topGuides()} }

// renderIndex renders the list of guides below a heading.
func (p *Pages) renderIndex(heading string) []byte {
	return p.render("guides.html", struct {
		guideFrame
		Heading string
	}{p.guideFrame(p.page(heading + " – Animal Store")), heading})
}

// section is a heading within a guide.
type section struct{ ID, Title string }

// passage is a heading within a guide and the text below it, for the search.
type passage struct {
	section
	Guide, Path string
	words       []string
}

// Search is the searchable text: each word once.
func (s passage) Search() string {
	slices.Sort(s.words)
	return strings.Join(slices.Compact(s.words), " ")
}

// passages are the sections of a guide.
func (g guide) passages() (all []passage) {
	for n := g.doc.FirstChild(); n != nil; n = n.NextSibling() {
		if h, ok := n.(*ast.Heading); ok && h.Level > 1 {
			id, _ := h.AttributeString("id")
			all = append(all, passage{section: section{string(id.([]byte)), plainText(h, g.file)}, Guide: g.Title, Path: g.Path})
		}
		if len(all) > 0 {
			last := &all[len(all)-1]
			last.words = append(last.words, strings.FieldsFunc(strings.ToLower(plainText(n, g.file)), func(c rune) bool {
				return c != '-' && c != '_' && c != '.' && !unicode.IsLetter(c) && !unicode.IsDigit(c)
			})...)
		}
	}
	return all
}

func (p *Pages) renderGuide(name string) *content {
	g := p.readGuide(name)
	sections := g.adapt(p, name)
	var body bytes.Buffer
	if err := markdown.Renderer().Render(&body, g.file, g.doc); err != nil {
		panic(err) // a bytes.Buffer never fails
	}
	frame := p.guideFrame(p.page(g.Title + " – Animal Store"))
	frame.Path, frame.Sections = g.Path, sections
	return newContent(typeHTML, p.render("guide.html", struct {
		guideFrame
		Body template.HTML // made from our own files, without raw HTML
	}{frame, template.HTML(body.Bytes())}))
}

// adapt turns links to other files into links to their pages. It removes comments and
// the table of contents, because the page builds its own from the returned sections.
func (g *guide) adapt(p *Pages, name string) (sections []section) {
	var links []*ast.Link
	var images, removed []ast.Node
	ast.Walk(g.doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Link:
			if entering {
				links = append(links, n)
			}
		case *ast.Image:
			if entering {
				images = append(images, n)
			}
		case *ast.HTMLBlock:
			if entering {
				removed = append(removed, n)
			}
		case *ast.Heading:
			if id, ok := n.AttributeString("id"); entering && ok && n.Level == 2 {
				sections = append(sections, section{string(id.([]byte)), plainText(n, g.file)})
			}
		case *ast.List:
			if len(sections) == 0 && entering && isContents(n) {
				removed = append(removed, n)
			}
		}
		return ast.WalkContinue, nil
	})
	for _, link := range links {
		p.relink(link, name)
	}
	for _, n := range images { // pictures aren't embedded
		unwrap(n)
	}
	for _, n := range removed {
		n.Parent().RemoveChild(n.Parent(), n)
	}
	return sections
}

// isContents reports whether every item of a list is a link within the page.
func isContents(list ast.Node) bool {
	for item := list.FirstChild(); item != nil; item = item.NextSibling() {
		link, ok := item.FirstChild().FirstChild().(*ast.Link)
		if !ok || !bytes.HasPrefix(link.Destination, []byte("#")) {
			return false
		}
	}
	return true
}

// relink makes a link in a guide work on the page. A file that isn't served becomes
// plain text.
func (p *Pages) relink(link *ast.Link, from string) {
	to, err := url.Parse(string(link.Destination))
	if err != nil || to.Scheme != "" || to.Path == "" {
		return
	}
	target := guidePath(strings.TrimSuffix(path.Join(path.Dir(from), to.Path), ".md"))
	if p.fixed[target].render == nil {
		unwrap(link)
		return
	}
	if to.Fragment != "" {
		target += "#" + to.Fragment
	}
	link.Destination = []byte(target)
}

// unwrap replaces a node with its text.
func unwrap(n ast.Node) {
	for child := n.FirstChild(); child != nil; child = n.FirstChild() {
		n.Parent().InsertBefore(n.Parent(), n, child)
	}
	n.Parent().RemoveChild(n.Parent(), n)
}

// plainText is the text of a node without its formatting.
func plainText(n ast.Node, file []byte) string {
	var b strings.Builder
	ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if t, ok := n.(*ast.Text); ok && entering {
			b.Write(t.Segment.Value(file))
			if t.SoftLineBreak() {
				b.WriteByte(' ')
			}
		}
		if n.Type() == ast.TypeBlock && !entering {
			b.WriteByte(' ')
		}
		return ast.WalkContinue, nil
	})
	return strings.TrimSpace(b.String())
}

// blockRenderer renders elements differently from goldmark: headings link to
// themselves, code blocks are labelled, and tables can have the focus.
type blockRenderer struct{}

func (r blockRenderer) RegisterFuncs(reg renderer.NodeRendererFuncRegisterer) {
	reg.Register(ast.KindHeading, renderHeading)
	reg.Register(ast.KindFencedCodeBlock, renderCode)
	reg.Register(extast.KindTable, renderTable)
}

func renderHeading(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	h := n.(*ast.Heading)
	id, _ := h.AttributeString("id")
	switch {
	case h.Level == 1 && entering:
		fmt.Fprintf(w, "<h1>")
	case entering:
		fmt.Fprintf(w, "<h%d id=%q>", h.Level, id)
	case h.Level == 1:
		fmt.Fprint(w, "</h1>\n")
	default:
		fmt.Fprintf(w, " <a class=\"anchor\" href=\"#%s\" aria-label=\"Link to this section\">#</a></h%d>\n", id, h.Level)
	}
	return ast.WalkContinue, nil
}

// renderTable makes wide tables scroll with the keyboard.
func renderTable(w util.BufWriter, _ []byte, _ ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		fmt.Fprint(w, "<table tabindex=\"0\">\n")
	} else {
		fmt.Fprint(w, "</table>\n")
	}
	return ast.WalkContinue, nil
}

// blockLabels are the labels of code blocks, by the word after the language in the
// fence. Commands have no label.
var blockLabels = map[string]string{"output": "Output", "terminal": "In a separate terminal"}

func renderCode(w util.BufWriter, file []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	block := n.(*ast.FencedCodeBlock)
	how := ""
	if block.Info != nil {
		_, how, _ = strings.Cut(string(block.Info.Value(file)), " ")
	}
	label := blockLabels[how]
	if name, ok := strings.CutPrefix(how, "file="); ok {
		label = name
	}
	class := "block"
	if how == "output" {
		class += " output"
	}
	fmt.Fprintf(w, "<figure class=%q>", class)
	if label != "" {
		fmt.Fprintf(w, "<figcaption>%s</figcaption>", template.HTMLEscapeString(label))
	}
	fmt.Fprint(w, `<pre tabindex="0"><code>`)
	for i := range block.Lines().Len() {
		line := block.Lines().At(i)
		template.HTMLEscape(w, line.Value(file))
	}
	fmt.Fprint(w, "</code></pre></figure>\n")
	return ast.WalkContinue, nil
}
