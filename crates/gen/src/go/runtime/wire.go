package mingleclient

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// wireLate is the level of an answer that did not come in time.
const wireLate = "late"

// wireDepthMax is the largest number of lists and structs within each other. The server takes fewer; the limit
// ends values that contain themselves.
const wireDepthMax = 1000

// wireReads reads values of a type from JSON.
type wireReads[T any] interface {
	wireRead(r *wireReader, found any) T
}

// wireType writes values of a type as JSON, and reads them.
type wireType[T any] interface {
	wireReads[T]
	wireWrite(w *wireWriter, value T)
}

// wireWriter writes JSON, until a value cannot be sent.
type wireWriter struct {
	body  []byte
	path  []string
	depth int
	err   error
}

func (w *wireWriter) refuse(format string, found ...any) {
	if w.err == nil {
		w.err = &ArgumentError{Path: strings.Join(w.path, ""), Problem: fmt.Sprintf(format, found...)}
	}
}

func (w *wireWriter) open(bracket byte) {
	w.body = append(w.body, bracket)
	w.depth++
	if w.depth > wireDepthMax {
		w.refuse("expected at most %d values within each other", wireDepthMax)
	}
}

func (w *wireWriter) close(bracket byte) {
	w.body = append(w.body, bracket)
	w.depth--
}

// wireBegin begins a struct.
func (w *wireWriter) wireBegin() {
	w.open('{')
}

// wireEnd ends a struct.
func (w *wireWriter) wireEnd() {
	w.close('}')
}

// name writes the name of a member of a struct.
func (w *wireWriter) name(name string) {
	if w.body[len(w.body)-1] != '{' {
		w.body = append(w.body, ',')
	}
	w.text(name)
	w.body = append(w.body, ':')
}

func (w *wireWriter) text(text string) {
	if !utf8.ValidString(text) {
		w.refuse("expected text in UTF-8, found %s", wireShown(text))
		return
	}
	w.body = append(w.body, '"')
	for _, c := range []byte(text) {
		switch {
		case c == '"' || c == '\\':
			w.body = append(w.body, '\\', c)
		case c < ' ':
			w.body = fmt.Appendf(w.body, "\\u%04x", c)
		default:
			w.body = append(w.body, c)
		}
	}
	w.body = append(w.body, '"')
}

// wirePart writes a part of a value; an error names its place.
func wirePart[T any](w *wireWriter, place string, of wireType[T], value T) {
	if w.err != nil {
		return
	}
	w.path = append(w.path, place)
	of.wireWrite(w, value)
	w.path = w.path[:len(w.path)-1]
}

// wireMember writes a member of a struct: its name in the program, and its field in Go.
func wireMember[T any](w *wireWriter, name, field string, of wireType[T], value T) {
	w.name(name)
	wirePart(w, "."+field, of, value)
}

// wireKey writes a handle: the key, which is a field in Go.
func wireKey[T any](w *wireWriter, field string, of wireType[T], value T) {
	wirePart(w, "."+field, of, value)
}

// wireReader reads JSON, until it is not what the program's types say.
type wireReader struct {
	path []string
	err  error
}

func (r *wireReader) expect(expected string, found any) {
	if r.err == nil {
		shown, err := json.Marshal(found)
		if err != nil {
			shown = []byte(err.Error())
		}
		where := strings.TrimPrefix(strings.Join(r.path, ""), ".")
		r.err = fmt.Errorf("expected %s as %s, found %s", expected, where, wireCut(string(shown)))
	}
}

// wireObject returns the members of an object.
func (r *wireReader) wireObject(found any) map[string]any {
	members, ok := found.(map[string]any)
	if !ok {
		r.expect("an object", found)
	}
	return members
}

func (r *wireReader) list(found any) []any {
	items, ok := found.([]any)
	if !ok {
		r.expect("a list", found)
	}
	return items
}

func (r *wireReader) text(expected string, found any) string {
	text, ok := found.(string)
	if !ok {
		r.expect(expected, found)
	}
	return text
}

// wireAt reads the value at a place.
func wireAt[T any](r *wireReader, place string, of wireReads[T], found any) (value T) {
	if r.err != nil {
		return value
	}
	r.path = append(r.path, place)
	value = of.wireRead(r, found)
	r.path = r.path[:len(r.path)-1]
	return value
}

// wireField reads a member of an object.
func wireField[T any](r *wireReader, members map[string]any, name string, of wireReads[T]) T {
	return wireAt(r, "."+name, of, members[name])
}

// wireShown returns a text in quotes, for a message.
func wireShown(text string) string {
	return wireCut(strconv.Quote(text))
}

func wireCut(text string) string {
	const longest = 40
	if cut := []rune(text); len(cut) > longest {
		return string(cut[:longest]) + "…"
	}
	return text
}

// wireBool is the type of bool.
type wireBool struct{}

func (wireBool) wireWrite(w *wireWriter, value bool) {
	w.body = strconv.AppendBool(w.body, value)
}

func (wireBool) wireRead(r *wireReader, found any) bool {
	value, ok := found.(bool)
	if !ok {
		r.expect("a bool", found)
	}
	return value
}

// wireInt is the type of int.
type wireInt struct{}

func (wireInt) wireWrite(w *wireWriter, value int64) {
	const exact = 1 << 53
	if value >= -exact && value <= exact {
		w.body = strconv.AppendInt(w.body, value, 10)
		return
	}
	// Not all readers of JSON keep greater numbers exact.
	w.text(strconv.FormatInt(value, 10))
}

func (wireInt) wireRead(r *wireReader, found any) int64 {
	text, ok := found.(string)
	if number, isNumber := found.(json.Number); isNumber {
		text, ok = number.String(), true
	}
	value, err := strconv.ParseInt(text, 10, 64)
	if !ok || err != nil || strings.HasPrefix(text, "+") {
		r.expect("an int", found)
	}
	return value
}

// wireFloat is the type of float.
type wireFloat struct{}

func (wireFloat) wireWrite(w *wireWriter, value float64) {
	switch {
	case math.IsNaN(value):
		w.text("NaN")
	case math.IsInf(value, 1):
		w.text("Infinity")
	case math.IsInf(value, -1):
		w.text("-Infinity")
	case value == 0 && math.Signbit(value):
		w.body = append(w.body, "-0.0"...)
	default:
		w.body = strconv.AppendFloat(w.body, value, 'g', -1, 64)
	}
}

func (wireFloat) wireRead(r *wireReader, found any) float64 {
	switch found := found.(type) {
	case json.Number:
		if value, err := found.Float64(); err == nil {
			return value
		}
	case string:
		switch found {
		case "NaN":
			return math.NaN()
		case "Infinity":
			return math.Inf(1)
		case "-Infinity":
			return math.Inf(-1)
		}
	}
	r.expect("a float", found)
	return 0
}

// wireString is the type of string.
type wireString struct{}

func (wireString) wireWrite(w *wireWriter, value string) {
	w.text(value)
}

func (wireString) wireRead(r *wireReader, found any) string {
	return r.text("a string", found)
}

// wireOneOf is the type of an enumeration.
type wireOneOf[T ~string] struct {
	name   string
	values []T
}

// wireNewOneOf returns the type of an enumeration with these values.
func wireNewOneOf[T ~string](name string, values ...T) wireOneOf[T] {
	return wireOneOf[T]{name, values}
}

func (of wireOneOf[T]) wireWrite(w *wireWriter, value T) {
	if !slices.Contains(of.values, value) {
		w.refuse("expected a value of %s, found %s", of.name, wireShown(string(value)))
		return
	}
	w.text(string(value))
}

func (of wireOneOf[T]) wireRead(r *wireReader, found any) T {
	expected := "a value of " + of.name
	value := T(r.text(expected, found))
	if !slices.Contains(of.values, value) {
		r.expect(expected, found)
	}
	return value
}

// wireBytes is the type of bytes.
type wireBytes struct{}

func (wireBytes) wireWrite(w *wireWriter, value []byte) {
	w.body = append(w.body, '"')
	w.body = base64.StdEncoding.AppendEncode(w.body, value)
	w.body = append(w.body, '"')
}

func (wireBytes) wireRead(r *wireReader, found any) []byte {
	value, err := base64.StdEncoding.Strict().DecodeString(r.text("bytes in base64", found))
	if err != nil {
		r.expect("bytes in base64", found)
	}
	return value
}

// wireTime is the type of time.
type wireTime struct{}

const (
	wireMicrosecond    = "us"
	wireSecondsPerUnit = 1_000_000
)

func (wireTime) wireWrite(w *wireWriter, value time.Time) {
	value = value.UTC()
	if value.Nanosecond()%1000 != 0 {
		shown := value.Format(time.RFC3339Nano)
		w.refuse("expected a time in whole microseconds, as Truncate(time.Microsecond) returns; found %s", shown)
		return
	}
	if value.Before(time.UnixMicro(math.MinInt64)) || value.After(time.UnixMicro(math.MaxInt64)) {
		w.refuse("expected a time of 64 bits of microseconds, found one in the year %d", value.Year())
		return
	}
	if year := value.Year(); year >= 0 && year <= 9999 {
		w.text(value.Format("2006-01-02T15:04:05.000000Z"))
		return
	}
	w.text(strconv.FormatInt(value.UnixMicro(), 10) + wireMicrosecond)
}

func (wireTime) wireRead(r *wireReader, found any) time.Time {
	text := r.text("a time", found)
	if digits, isFar := strings.CutSuffix(text, wireMicrosecond); isFar {
		if micros, err := strconv.ParseInt(digits, 10, 64); err == nil {
			return time.UnixMicro(micros).UTC()
		}
	}
	value, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || !strings.HasSuffix(text, "Z") || value.Nanosecond()%1000 != 0 {
		r.expect("a time", found)
	}
	return value
}

// wireDate is the type of date.
type wireDate struct{}

func (wireDate) wireWrite(w *wireWriter, value Date) {
	w.text(value.String())
}

func (wireDate) wireRead(r *wireReader, found any) Date {
	value, err := ParseDate(r.text("a date", found))
	if err != nil {
		r.expect("a date", found)
	}
	return value
}

// wireDecimal is the type of decimal.
type wireDecimal struct{}

func (wireDecimal) wireWrite(w *wireWriter, value Decimal) {
	w.text(value.String())
}

func (wireDecimal) wireRead(r *wireReader, found any) Decimal {
	value, err := ParseDecimal(r.text("a decimal", found))
	if err != nil {
		r.expect("a decimal", found)
	}
	return value
}

// wireJSON is the type of json.
type wireJSON struct{}

func (wireJSON) wireWrite(w *wireWriter, value JSON) {
	if len(value) == 0 {
		value = JSON("null")
	}
	var compact bytes.Buffer
	if !utf8.Valid(value) || json.Compact(&compact, value) != nil {
		w.refuse("expected a JSON document, found %s", wireShown(string(value)))
		return
	}
	w.body = append(w.body, compact.Bytes()...)
}

func (wireJSON) wireRead(r *wireReader, found any) JSON {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(found); err != nil {
		r.expect("a JSON document", nil)
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n"))
}

// wireSomeJSON is the type of json in an option. Documents that could be taken for something else have a member
// around them.
type wireSomeJSON struct{ wireJSON }

func (s wireSomeJSON) wireWrite(w *wireWriter, value JSON) {
	w.wireBegin()
	w.name("some")
	wirePart(w, "", s.wireJSON, value)
	w.wireEnd()
}

func (s wireSomeJSON) wireRead(r *wireReader, found any) JSON {
	members, _ := found.(map[string]any)
	if some, ok := members["some"]; ok && len(members) == 1 {
		found = some
	}
	return s.wireJSON.wireRead(r, found)
}

// wireNone is the type of the result of a transaction without one.
type wireNone struct{}

func (wireNone) wireRead(*wireReader, any) struct{} {
	return struct{}{}
}

type wireOptionType[T any] struct{ inner wireType[T] }

// wireOption returns the type of an option, whose value is nil or a pointer.
func wireOption[T any](inner wireType[T]) wireType[*T] {
	return wireOptionType[T]{inner}
}

func (o wireOptionType[T]) wireWrite(w *wireWriter, value *T) {
	if value == nil {
		w.body = append(w.body, "null"...)
		return
	}
	wirePart(w, "", o.inner, *value)
}

func (o wireOptionType[T]) wireRead(r *wireReader, found any) *T {
	if found == nil {
		return nil
	}
	value := wireAt(r, "", o.inner, found)
	return &value
}

type wireSomeType[T any] struct{ inner wireType[T] }

// wireSome returns the type of an option in another option.
func wireSome[T any](inner wireType[T]) wireType[T] {
	return wireSomeType[T]{inner}
}

func (s wireSomeType[T]) wireWrite(w *wireWriter, value T) {
	w.wireBegin()
	w.name("some")
	wirePart(w, "", s.inner, value)
	w.wireEnd()
}

func (s wireSomeType[T]) wireRead(r *wireReader, found any) T {
	return wireField(r, r.wireObject(found), "some", s.inner)
}

type wireListType[T any] struct{ inner wireType[T] }

// wireList returns the type of a list.
func wireList[T any](inner wireType[T]) wireType[[]T] {
	return wireListType[T]{inner}
}

func (l wireListType[T]) wireWrite(w *wireWriter, value []T) {
	w.open('[')
	for at, item := range value {
		if at > 0 {
			w.body = append(w.body, ',')
		}
		wirePart(w, fmt.Sprintf("[%d]", at), l.inner, item)
	}
	w.close(']')
}

func (l wireListType[T]) wireRead(r *wireReader, found any) []T {
	items := r.list(found)
	values := make([]T, 0, len(items))
	for at, item := range items {
		values = append(values, wireAt(r, fmt.Sprintf("[%d]", at), l.inner, item))
	}
	return values
}

type wireRushedType[T any] struct{ inner wireType[T] }

// wireRushed returns the type of an answer with a level.
func wireRushed[T any](inner wireType[T]) wireType[Rushed[T]] {
	return wireRushedType[T]{inner}
}

func (wireRushedType[T]) wireWrite(w *wireWriter, value Rushed[T]) {
	w.refuse("expected no answer of a store, found one of level %s", wireShown(value.Level))
}

func (t wireRushedType[T]) wireRead(r *wireReader, found any) (rushed Rushed[T]) {
	members := r.wireObject(found)
	rushed.Level = wireField(r, members, "level", wireString{})
	if !rushed.IsLate() {
		rushed.Value = wireField(r, members, "value", t.inner)
	}
	return rushed
}

type wireEntriesType[K, V any] struct {
	key   wireReads[K]
	value wireReads[V]
}

// wireEntries returns the type of a map whose keys Go's maps would not find.
func wireEntries[K, V any](key wireReads[K], value wireReads[V]) wireReads[[]Entry[K, V]] {
	return wireEntriesType[K, V]{key, value}
}

func (e wireEntriesType[K, V]) wireRead(r *wireReader, found any) []Entry[K, V] {
	items := r.list(found)
	entries := make([]Entry[K, V], 0, len(items))
	for at, item := range items {
		place := fmt.Sprintf("[%d]", at)
		pair, ok := item.([]any)
		if !ok || len(pair) != 2 {
			r.expect("pairs of a key and a value", found)
			break
		}
		entries = append(entries, Entry[K, V]{wireAt(r, place, e.key, pair[0]), wireAt(r, place, e.value, pair[1])})
	}
	return entries
}

type wireMapType[K comparable, V any] struct{ entries wireReads[[]Entry[K, V]] }

// wireMap returns the type of a map whose keys Go's maps find.
func wireMap[K comparable, V any](key wireReads[K], value wireReads[V]) wireReads[map[K]V] {
	return wireMapType[K, V]{wireEntries(key, value)}
}

func (m wireMapType[K, V]) wireRead(r *wireReader, found any) map[K]V {
	entries := m.entries.wireRead(r, found)
	values := make(map[K]V, len(entries))
	for _, entry := range entries {
		values[entry.Key] = entry.Value
	}
	return values
}

type wireNamedType[V any] struct{ value wireReads[V] }

// wireNamed returns the type of a map with strings as keys.
func wireNamed[V any](value wireReads[V]) wireReads[map[string]V] {
	return wireNamedType[V]{value}
}

func (n wireNamedType[V]) wireRead(r *wireReader, found any) map[string]V {
	members := r.wireObject(found)
	values := make(map[string]V, len(members))
	for name := range members {
		values[name] = wireField(r, members, name, n.value)
	}
	return values
}

// wireObjectPath returns the path of an object below that of all objects. Keys that are texts stand there as
// they are, unless they would be taken for something else.
func wireObjectPath[H any](kind string, isText bool, of wireType[H], handle H) (string, error) {
	w := wireWriter{path: []string{kind}}
	of.wireWrite(&w, handle)
	if w.err != nil {
		return "", w.err
	}
	shown := string(w.body)
	var text string
	if isText && json.Unmarshal(w.body, &text) == nil {
		isPlain := text != "" && text != "." && text != ".." && text[0] != '"'
		if isPlain {
			shown = text
		}
	}
	return wireEscaped(kind) + "/" + wireEscaped(shown), nil
}

func wireEscaped(part string) string {
	return strings.ReplaceAll(url.QueryEscape(part), "+", "%20")
}
