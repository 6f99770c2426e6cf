package mingleclient

import (
	"encoding"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
)

// Store is the name of a store of the program.
type Store string

// Handle is the handle of an object: its kind and its key. F is the type of its fields.
type Handle[F any] interface {
	wirePath() (string, error)
	wireFields() wireReads[F]
}

// Entry is an item of a map whose keys Go's maps would not find by their value.
type Entry[K, V any] struct {
	// Key is the key of the item.
	Key K

	// Value is the value of the item.
	Value V
}

// Rushed is an answer with the level that it has, or none in time.
type Rushed[T any] struct {
	// Level is the level of the answer, or "late".
	Level string

	// Value is the answer; the zero value if it is late.
	Value T
}

// IsLate reports that no answer came in time.
func (r Rushed[T]) IsLate() bool {
	return r.Level == wireLate
}

// Early is the result of a call that returns before all stores have committed.
type Early[T any] struct {
	// Result is the result, if IsKnown.
	Result T

	// IsKnown is false if a store that comes later has yet to compute the result.
	IsKnown bool

	// Follows has the stores that have yet to commit. They follow by themselves.
	Follows []Store
}

// Some returns a pointer to a value, for optional arguments and fields.
func Some[T any](value T) *T {
	return &value
}

// Date is a day without a time zone. Every value is a day; the zero value is 1970-01-01. Dates are
// compared with ==.
type Date struct {
	days int32
}

const (
	wireYearMin    = -5_877_641
	wireYearMax    = 5_881_580
	wireDaySeconds = 86_400
)

// NewDate returns a day. It fails if there is no such day, or if the day is beyond the years that a
// date can have, -5877641 to 5881580.
func NewDate(year int, month time.Month, day int) (Date, error) {
	if year >= wireYearMin && year <= wireYearMax {
		at := time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
		days := at.Unix() / wireDaySeconds
		isSame := at.Year() == year && at.Month() == month && at.Day() == day
		if isSame && days >= math.MinInt32 && days <= math.MaxInt32 {
			return Date{int32(days)}, nil
		}
	}
	return Date{}, fmt.Errorf("expected a day of the calendar, found year %d, month %d, day %d", year, int(month), day)
}

// DateOf returns the day of a time in the time's own zone.
func DateOf(at time.Time) (Date, error) {
	return NewDate(at.Date())
}

// ParseDate reads a day such as "2026-01-31". Years beyond 9999 and before 0 have a sign.
func ParseDate(text string) (Date, error) {
	if parts := strings.Split(strings.TrimLeft(text, "+-"), "-"); len(parts) == 3 && wireIsYear(text, parts[0]) {
		year, month, day := wireDigits(parts[0], len(parts[0])), wireDigits(parts[1], 2), wireDigits(parts[2], 2)
		if strings.HasPrefix(text, "-") {
			year = -year
		}
		if month > 0 && day > 0 {
			if date, err := NewDate(year, time.Month(month), day); err == nil {
				return date, nil
			}
		}
	}
	return Date{}, fmt.Errorf("expected a date such as 2026-01-31, found %s", wireShown(text))
}

// wireIsYear reports that the digits of a year are those of a date that begins with its sign.
func wireIsYear(text, digits string) bool {
	signs := len(text) - len(strings.TrimLeft(text, "+-"))
	isLong := len(digits) > 4 && len(digits) <= 7 && digits[0] != '0'
	switch {
	case signs == 0:
		return len(digits) == 4
	case signs == 1 && text[0] == '+':
		return isLong
	default:
		return signs == 1 && (isLong || len(digits) == 4 && digits != "0000")
	}
}

// wireDigits returns the number that these decimal digits are, or -1 if they are something else.
func wireDigits(text string, length int) int {
	number, err := strconv.ParseUint(text, 10, 31)
	if err != nil || len(text) != length {
		return -1
	}
	return int(number)
}

// Time returns the beginning of the day in UTC.
func (d Date) Time() time.Time {
	return time.Unix(int64(d.days)*wireDaySeconds, 0).UTC()
}

// Year returns the year of the day.
func (d Date) Year() int {
	return d.Time().Year()
}

// Month returns the month of the day.
func (d Date) Month() time.Month {
	return d.Time().Month()
}

// Day returns the day of the month.
func (d Date) Day() int {
	return d.Time().Day()
}

// AddDays returns the day so many days later. It stays within the years that a date can have.
func (d Date) AddDays(days int) Date {
	bounded := max(min(int64(days), math.MaxUint32), -math.MaxUint32)
	return Date{int32(max(min(int64(d.days)+bounded, math.MaxInt32), math.MinInt32))}
}

// Sub returns the number of days from another day to this one.
func (d Date) Sub(other Date) int64 {
	return int64(d.days) - int64(other.days)
}

// Compare returns -1 if the day is before another one, 1 if it is after it, and 0 if it is the same.
func (d Date) Compare(other Date) int {
	return d.Time().Compare(other.Time())
}

// String returns the day as text, such as "2026-01-31".
func (d Date) String() string {
	year, month, day := d.Time().Date()
	shown := fmt.Sprintf("%04d", year)
	if year > 9999 {
		shown = fmt.Sprintf("+%d", year)
	} else if year < 0 {
		shown = fmt.Sprintf("-%04d", -year)
	}
	return fmt.Sprintf("%s-%02d-%02d", shown, int(month), day)
}

// MarshalText returns the day as text.
func (d Date) MarshalText() ([]byte, error) {
	return []byte(d.String()), nil
}

// UnmarshalText reads a day as [ParseDate] does.
func (d *Date) UnmarshalText(text []byte) error {
	date, err := ParseDate(string(text))
	if err == nil {
		*d = date
	}
	return err
}

// Decimal is an exact decimal number of at most 38 digits, with its number of decimal places. The zero
// value is 0. Two numbers with different decimal places, such as 1.5 and 1.50, are different values
// for ==; [Decimal.Cmp] compares numbers.
type Decimal struct {
	// text is the number in its only form; empty for 0 without decimal places.
	text string
}

const wireDecimalDigitsMax = 38

// NewDecimal returns unscaled × 10^-scale, with scale decimal places. It fails if the number has more than
// 38 digits.
func NewDecimal(unscaled *big.Int, scale int) (Decimal, error) {
	if unscaled == nil {
		return Decimal{}, fmt.Errorf("expected an integer, found nil")
	}
	if scale < -wireDecimalDigitsMax || scale > wireDecimalDigitsMax || unscaled.BitLen() > 1024 {
		return Decimal{}, fmt.Errorf("expected a decimal of at most %d digits, found scale %d", wireDecimalDigitsMax, scale)
	}
	sign, digits := "", new(big.Int).Abs(unscaled).String()
	if unscaled.Sign() < 0 {
		sign = "-"
	}
	digits += strings.Repeat("0", max(-scale, 0))
	if missing := scale + 1 - len(digits); missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}
	if scale > 0 {
		digits = digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
	}
	return ParseDecimal(sign + digits)
}

// ParseDecimal reads a number such as "-19.90", without an exponent.
func ParseDecimal(text string) (Decimal, error) {
	whole, part, hasPart := strings.Cut(strings.TrimPrefix(text, "-"), ".")
	if !wireAreDigits(whole) || hasPart && !wireAreDigits(part) {
		return Decimal{}, fmt.Errorf("expected a decimal such as -19.90, found %s", wireShown(text))
	}
	whole = strings.TrimLeft(whole, "0")
	if len(whole)+len(strings.TrimRight(part, "0")) > wireDecimalDigitsMax {
		return Decimal{}, fmt.Errorf("expected a decimal of at most %d digits, found %s", wireDecimalDigitsMax, wireShown(text))
	}
	sign := ""
	if strings.HasPrefix(text, "-") && whole+strings.Trim(part, "0") != "" {
		sign = "-"
	}
	switch {
	case hasPart && whole == "":
		return Decimal{sign + "0." + part}, nil
	case hasPart:
		return Decimal{sign + whole + "." + part}, nil
	case whole == "":
		return Decimal{}, nil
	}
	return Decimal{sign + whole}, nil
}

func wireAreDigits(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}

// String returns the number as text, such as "-19.90".
func (d Decimal) String() string {
	if d.text == "" {
		return "0"
	}
	return d.text
}

// Scale returns the number of decimal places.
func (d Decimal) Scale() int {
	_, part, _ := strings.Cut(d.text, ".")
	return len(part)
}

// Unscaled returns the number without its decimal point: -1990 for -19.90.
func (d Decimal) Unscaled() *big.Int {
	digits := strings.Replace(d.String(), ".", "", 1)
	number, _ := new(big.Int).SetString(digits, 10)
	return number
}

// Rat returns the exact number.
func (d Decimal) Rat() *big.Rat {
	number, _ := new(big.Rat).SetString(d.String())
	return number
}

// Sign returns -1 if the number is below 0, 1 if it is above, and 0 otherwise.
func (d Decimal) Sign() int {
	return d.Rat().Sign()
}

// Cmp returns -1 if the number is less than another one, 1 if it is greater, and 0 if both are equal.
func (d Decimal) Cmp(other Decimal) int {
	return d.Rat().Cmp(other.Rat())
}

// MarshalText returns the number as text.
func (d Decimal) MarshalText() ([]byte, error) {
	return []byte(d.String()), nil
}

// UnmarshalText reads a number as [ParseDecimal] does.
func (d *Decimal) UnmarshalText(text []byte) error {
	number, err := ParseDecimal(string(text))
	if err == nil {
		*d = number
	}
	return err
}

// JSON is any JSON document, as its text: [json.Marshal] makes one, and [json.Unmarshal] reads it. The text from
// the server has the numbers of the document with all their digits. The zero value is the document null.
type JSON = json.RawMessage

var (
	_ encoding.TextMarshaler   = Date{}
	_ encoding.TextUnmarshaler = (*Date)(nil)
	_ encoding.TextMarshaler   = Decimal{}
	_ encoding.TextUnmarshaler = (*Decimal)(nil)
)
