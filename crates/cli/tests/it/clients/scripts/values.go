// Values of all types go to a server and come back as they went.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"os"
	"strings"
	"time"

	"workshop/check"
	. "workshop/clients/odd"
)

var ctx = context.Background()

func main() {
	client := check.Must(NewClient(os.Args[1], ClientConfig{}))
	structs(client)
	numbers(client)
	times(client)
	dates(client)
	decimals(client)
	documents(client)
	enums(client)
	objects(client)
	unsendable(client)
}

func structs(client *Client) {
	bare := Option{Parts: []Option{}}
	full := Option{Value: Some("é\U0001f600\n\"\\\u2028\x1f</"), Parts: []Option{bare, bare}, Next: &bare}
	points := []Point{{X: 1.5, Y: -0.25}, {X: math.Inf(1), Y: 3}}
	check.Equal(check.Must(client.Echo(ctx, full, points, Some[*string](nil))), full)
	check.Equal(check.Must(client.Echo(ctx, full, points, nil)), bare)
	// No slice is an empty list.
	check.Equal(check.Must(client.Echo(ctx, Option{}, points, Some(Some("a")))), bare)
	check.Equal(check.Must(client.StringOf(ctx, text())), text())
	for _, nested := range []**int64{nil, Some[*int64](nil), Some(Some(int64(5)))} {
		check.Equal(check.Must(client.Nested(ctx, nested)), nested)
	}
	check.Equal(check.Must(client.List(ctx, [][]int64{{1, 2}, {}})), [][]int64{{1, 2}, {}})
	check.Equal(check.Must(client.Show(ctx)), []*int64{Some(int64(1)), nil})
	check.Equal(*check.Must(client.Constructor(ctx, nil, Some(int64(3)))), int64(3))
	check.Equal(check.Must(client.Flip(ctx, Flag{On: false})), Flag{On: true})
	check.True(client.Nothing(ctx, Empty{}) == nil)
	check.Equal(check.Must(client.NothingUntil(ctx, StoreData, Empty{})), Early[struct{}]{IsKnown: true})
	check.Equal(check.Must(client.Bytes(ctx, nil, Some([]byte{}))), []byte{})
}

// text returns a struct with a value of each kind.
func text() String {
	var all []byte
	for range 300 {
		for value := range 256 {
			all = append(all, byte(value))
		}
	}
	return String{
		Type:        math.MinInt64,
		MoveTo:      true,
		Bytes:       all,
		List:        [][]*int64{{}, {nil, Some(int64(1 << 53)), Some(int64(1<<53 + 1))}},
		Datetime:    time.Date(2026, 11, 22, 10, 20, 30, 456_000_000, time.UTC),
		Of:          Result{Self: []byte{0, 255}},
		Constructor: Some(Some(Some([]byte{}))),
		Proto:       1,
		Init:        2,
	}
}

func enums(client *Client) {
	ratings := []Literal{"a", LiteralNc17, LiteralNew, LiteralHostile, "A", LiteralNone}
	check.Equal(string(LiteralHostile), "\"'\\*/\u2028\u202e\n${x}")
	for _, rating := range ratings {
		grade := Grade{Rating: rating}
		check.Equal(check.Must(client.Rate(ctx, grade, rating, ratings)), append(ratings[:len(ratings):len(ratings)], rating))
		graded, found, err := Show(ctx, client, grade)
		check.True(found && err == nil, err)
		check.Equal(*graded.Rated, rating)
		check.Equal(graded.ByRating, map[Literal]Runtime{rating: "client"})
	}
	for _, wrong := range []Literal{"b", "nc_17", ""} {
		_, err := client.Rate(ctx, Grade{Rating: "a"}, wrong, nil)
		check.True(err != nil && strings.Contains(err.Error(), "a value of Literal"), err)
	}
}

func numbers(client *Client) {
	for _, value := range []int64{math.MaxInt64, math.MinInt64, 1<<53 + 1, -1<<53 - 1, 1 << 53, 0, -1} {
		check.Equal(check.Must(client.Class(ctx, value, 0, 0)), value)
	}
	for _, half := range []float64{0.1, math.Inf(1), math.Inf(-1), 5e-324, -1e300, 1e21, 1e-7} {
		check.Equal(check.Must(client.Half(ctx, Number{N: 1 << 60}, half*2)), half)
	}
	check.True(math.IsNaN(check.Must(client.Half(ctx, Number{N: 1}, math.NaN()))))
	check.True(math.Signbit(check.Must(client.Half(ctx, Number{N: 1}, math.Copysign(0, -1)))))
	check.True(!math.Signbit(check.Must(client.Half(ctx, Number{}, 0))))
}

func times(client *Client) {
	epoch := time.Unix(0, 0).UTC()
	shown := func(start time.Time) DayFields {
		day, found, err := Show(ctx, client, Day{Start: start})
		check.True(found && err == nil, err)
		return day
	}
	for _, ms := range []int64{1, -1, 253_402_300_799_999, 253_402_300_800_000, -62_167_219_200_001, -62_167_219_200_000} {
		moment := time.UnixMilli(ms).UTC()
		check.Equal(check.Must(client.Later(ctx, Day{Start: epoch}, ms)), moment)
		check.Equal(check.Must(client.Later(ctx, Day{Start: moment}, 0)), moment)
		check.Equal(shown(moment).Start, moment)
	}
	for _, us := range []int64{1, -1, 999_999, math.MaxInt64, math.MinInt64, -62_167_219_200_000_001, 253_402_300_799_999_999} {
		moment := time.UnixMicro(us).UTC()
		check.Equal(check.Must(client.Later(ctx, Day{Start: moment}, 0)), moment)
		check.Equal(shown(moment).At, moment)
	}
	elsewhere := time.FixedZone("elsewhere", -3*3600)
	there := time.Date(2026, 1, 1, 0, 0, 0, 0, elsewhere)
	check.Equal(check.Must(client.Later(ctx, Day{Start: there}, 1)), there.Add(time.Millisecond).UTC())
	// The zero value is a time, too.
	check.Equal(check.Must(client.Later(ctx, Day{}, 0)), time.Time{})
}

func dates(client *Client) {
	for day, next := range map[string]string{
		"1969-12-31":     "1970-01-01",
		"2000-02-28":     "2000-02-29",
		"1900-02-28":     "1900-03-01",
		"0000-02-28":     "0000-02-29",
		"9999-12-31":     "+10000-01-01",
		"-0001-12-31":    "0000-01-01",
		"-5877641-06-23": "-5877641-06-24",
		"+5881580-07-11": "+5881580-07-11",
	} {
		date := check.Must(ParseDate(day))
		check.Equal(date.String(), day)
		found := check.Must(client.NextDay(ctx, date, nil))
		check.Equal(found.String(), next)
		check.Equal(found, date.AddDays(1))
		check.Equal(check.Must(client.NextDay(ctx, date, Some(int64(0)))), date)
	}
	for _, wrong := range []string{
		"2026-02-29", "2026-00-01", "2026-01-00", "2026-1-31", "-0000-01-01", "+2026-01-31", "today", "",
		"+5881580-07-12", "-5877641-06-22", "+10000-13-01", "--001-01-01", "2026-01-+1", "9999999-01-01", "+00010000-01-01",
	} {
		_, err := ParseDate(wrong)
		check.True(err != nil, wrong)
	}
	check.Equal(Date{}.String(), "1970-01-01")
	date := check.Must(NewDate(2024, time.February, 29))
	check.Equal([]int{date.Year(), int(date.Month()), date.Day()}, []int{2024, 2, 29})
	check.Equal(date.Sub(Date{}), int64(19_782))
	check.True(date.Compare(Date{}) == 1 && Date{}.Compare(date) == -1 && date.Compare(date) == 0)
	check.Equal(date.AddDays(math.MaxInt).AddDays(math.MinInt).String(), "-5877641-06-23")
	check.Equal(check.Must(DateOf(date.Time())), date)
	_, err := NewDate(2023, time.February, 29)
	check.True(err != nil)
	var back map[string]Date
	encoded := check.Must(json.Marshal(map[string]Date{"a": date}))
	check.True(json.Unmarshal(encoded, &back) == nil && back["a"] == date, string(encoded))
}

func decimals(client *Client) {
	nines := strings.Repeat("9", 38)
	for _, sum := range [][3]string{
		{"19.90", "0.1", "20.00"},
		{"-0", "-007.5", "-7.5"},
		{nines, "0", nines},
		{"-" + nines, "0", "-" + nines},
		{"0." + strings.Repeat("0", 37) + "1", "0", "0." + strings.Repeat("0", 37) + "1"},
	} {
		one, other := check.Must(ParseDecimal(sum[0])), check.Must(ParseDecimal(sum[1]))
		check.Equal(check.Must(client.Sum(ctx, one, other)).String(), sum[2])
	}
	for _, wrong := range []string{"1e3", "", "1.", ".5", "NaN", "+1", "--1", "1.2.3", nines + "0", nines + ".1", "0.0" + nines} {
		_, err := ParseDecimal(wrong)
		check.True(err != nil, wrong)
	}
	check.Equal(Decimal{}.String(), "0")
	check.Equal(check.Must(ParseDecimal("-0")), Decimal{})
	price := check.Must(ParseDecimal("-19.90"))
	check.Equal(price.Unscaled(), big.NewInt(-1990))
	check.Equal([]int{price.Scale(), price.Sign(), price.Cmp(Decimal{})}, []int{2, -1, -1})
	check.Equal(price.Rat(), big.NewRat(-199, 10))
	check.Equal(check.Must(NewDecimal(price.Unscaled(), price.Scale())), price)
	check.Equal(check.Must(NewDecimal(big.NewInt(5), 3)).String(), "0.005")
	check.Equal(check.Must(NewDecimal(big.NewInt(-5), -3)).String(), "-5000")
	check.Equal(check.Must(ParseDecimal("1.5")).Cmp(check.Must(ParseDecimal("1.50"))), 0)
	for _, scale := range []int{39, -39, math.MaxInt, math.MinInt} {
		_, err := NewDecimal(big.NewInt(1), scale)
		check.True(err != nil, scale)
	}
	_, err := NewDecimal(nil, 0)
	check.True(err != nil)
	_, err = NewDecimal(new(big.Int).Lsh(big.NewInt(1), 1<<20), 0)
	check.True(err != nil)
}

func documents(client *Client) {
	session := Session_{Of: Result{Self: []byte("documents")}}
	for given, canonical := range map[string]string{
		"":                    "null",
		"null":                "null",
		" [ 1.50 , -0, 1e3 ]": "[1.5,0,1000]",
		`{"b": 12345678901234567890.10, "a": 1e-30, "": "<\u00e9\">"}`: `{"":"<é\">","a":0.` + strings.Repeat("0", 29) + `1,"b":12345678901234567890.1}`,
		`{"some":null}`: `{"some":null}`,
	} {
		document := JSON(given)
		for _, maybe := range []*JSON{nil, &document} {
			back := check.Must(client.Documents(ctx, session, document, maybe, []JSON{document, document}))
			check.Equal(string(back.JSON), canonical)
			check.Equal(back.Maybe == nil, maybe == nil)
			if back.Maybe != nil {
				check.Equal(string(*back.Maybe), canonical)
			}
			check.Equal(len(back.All), 2)
		}
	}
	for _, wrong := range []string{"{", "1 2", "nul", "\"\xff\""} {
		_, err := client.Documents(ctx, session, JSON(wrong), nil, nil)
		var problem *ArgumentError
		check.True(errors.As(err, &problem), wrong)
	}
	for _, refused := range []string{`{"a":1,"a":2}`, `"\u0000"`, `"\ud800"`, "1e400"} {
		_, err := client.Documents(ctx, session, JSON(refused), nil, nil)
		check.True(err != nil, refused)
	}
	shown, found, err := Show(ctx, client, session)
	check.True(found && err == nil, err)
	check.True(len(shown.Document) > 0 && len(shown.Documents["a"]) > 0)
}

func objects(client *Client) {
	epoch := time.Unix(0, 0).UTC()
	points := []Point{{X: 1.5, Y: -0.25}}
	check.Must(client.Points(ctx, Day{Start: epoch}, points))
	day, found, err := Show(ctx, client, Day{Start: epoch})
	check.True(found && err == nil, err)
	check.Equal(day.Points, points)

	what, person := text(), User{Name: "ana"}
	session := Session_{Of: what.Of}
	check.True(client.Keep(ctx, session, what, person, epoch) == nil)
	shown, found, err := Show(ctx, client, session)
	check.True(found && err == nil, err)
	check.True(math.IsNaN(shown.ByBool[true]))
	shown.ByBool = nil
	check.Equal(shown, Session_Fields{
		Of:        what.Of,
		ByRef:     []Entry[Result, String]{{Key: what.Of, Value: what}},
		ByName:    map[string]int64{"a": what.Type},
		ByNumber:  map[int64]string{what.Type: "b"},
		ByTime:    []Entry[time.Time, bool]{{Key: epoch, Value: true}},
		ByDate:    map[Date]Date{},
		ByDecimal: []Entry[Decimal, Decimal]{},
		ByBytes:   []Entry[[]byte, []int64]{{Key: what.Bytes, Value: []int64{1, 2}}},
		ByStruct:  map[Pair]*int64{{First: 1, Second: person}: nil},
		ByList:    []Entry[[]int64, int64]{{Key: []int64{1}, Value: 2}},
		ByFloat:   []Entry[float64, int64]{{Key: 1.5, Value: 2}},
		Document:  JSON("null"),
		Documents: map[string]JSON{},
		All:       []User{person},
		ToString:  []String{what},
		Count:     3,
	})
	few, found, err := Show(ctx, client, session, WithLimit(0))
	check.True(found && err == nil && len(few.All) == 0, err)
	grown, found, err := Show(ctx, client, person)
	check.True(found && err == nil && grown.Größe == 3, err)
	_, found, err = Show(ctx, client, User{Name: "nobody"})
	check.True(!found && err == nil, err)
	_, found, err = Show(ctx, client, UserFields{Pair: Pair{First: 1, Second: person}})
	check.True(!found && err == nil, err)
	for _, name := range []string{"", ".", "..", "a/b", "a?b#c%20", "\"", "\"a\"", "é\U0001f600 +&", "null", "5"} {
		check.True(client.Keep(ctx, session, what, User{Name: name}, epoch) == nil, name)
		odd, found, err := Show(ctx, client, User{Name: name})
		check.True(found && err == nil && odd.Name == name, name, err)
	}
}

// unsendable claims that values that cannot be sent exactly are refused, with their place.
func unsendable(client *Client) {
	refused := func(err error, path, problem string) {
		var wrong *ArgumentError
		check.True(errors.As(err, &wrong), err)
		check.True(wrong.Path == path && strings.Contains(wrong.Problem, problem), err)
	}
	_, err := client.Later(ctx, Day{Start: time.Unix(0, 1)}, 1)
	refused(err, "day.Start", "whole microseconds")
	_, err = client.Later(ctx, Day{Start: time.UnixMicro(math.MaxInt64).Add(time.Microsecond)}, 1)
	refused(err, "day.Start", "64 bits of microseconds")
	_, err = client.Echo(ctx, Option{Parts: []Option{{}, {Value: Some("\xff")}}}, nil, nil)
	refused(err, "a.Parts[1].Value", `expected text in UTF-8, found "\xff"`)
	_, err = client.Echo(ctx, Option{}, nil, Some(Some("a\xff")))
	refused(err, "c", "UTF-8")
	// A value that contains itself has no end.
	endless := Option{}
	endless.Next = &endless
	_, err = client.Echo(ctx, endless, nil, nil)
	var wrong *ArgumentError
	check.True(errors.As(err, &wrong) && strings.Contains(wrong.Problem, "at most 1000 values within each other"), err)
}
