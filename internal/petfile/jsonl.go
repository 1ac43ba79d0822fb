package petfile

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"animalstore"
)

// jsonlReader reads one JSON object per line.
type jsonlReader struct {
	in   *bufio.Reader
	line int64
}

func (r *jsonlReader) Next() (Row, error) {
	for {
		text, tooLong, err := r.readLine()
		if err != nil {
			return Row{}, err
		}
		row := Row{Line: r.line}
		if tooLong {
			row.Err = fmt.Errorf("the line has more than %d bytes", maxRow)
			return row, nil
		}
		if text = bytes.TrimSpace(text); len(text) == 0 {
			continue
		}
		row.Pet, row.Err = parsePet(text)
		row.validate()
		return row, nil
	}
}

// readLine reads a line. It drops the content of one that is too long.
func (r *jsonlReader) readLine() (text []byte, tooLong bool, err error) {
	r.line++
	for {
		part, err := r.in.ReadSlice('\n')
		if !tooLong {
			text = append(text, part...)
		}
		if len(text) > maxRow {
			text, tooLong = nil, true
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && (len(text) > 0 || tooLong):
			return text, tooLong, nil // the last line may lack a line break
		}
		return text, tooLong, err
	}
}

// parsePet reads an object with the fields of a pet. Others are ignored.
func parsePet(text []byte) (pet animalstore.NewPet, err error) {
	if !utf8.Valid(text) {
		return pet, errors.New("it is not UTF-8: save the file as UTF-8")
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil || fields == nil {
		return pet, errors.New("it is not a JSON object")
	}
	if pet.Name, err = stringField(fields, "name"); err != nil {
		return pet, err
	}
	whole, ok := parseWhole(string(fields["categoryId"]))
	if !ok {
		return pet, errors.New("categoryId must be a 64-bit integer")
	}
	pet.CategoryID = whole
	if _, given := fields["status"]; given {
		status, err := stringField(fields, "status")
		if err == nil && status == "" {
			err = fmt.Errorf("status must be one of %s", strings.Join([]string{}, ", "))
		}
		if err != nil {
			return pet, err
		}
		pet.Status = animalstore.PetStatus(status)
	}
	return pet, nil
}

func stringField(fields map[string]json.RawMessage, name string) (string, error) {
	raw, given := fields[name]
	var value *string
	switch err := json.Unmarshal(raw, &value); {
	case !given:
		return "", fmt.Errorf("%s is missing", name)
	case err != nil || value == nil:
		return "", fmt.Errorf("%s must be a string", name)
	}
	// encoding/json writes this character where there is half of one.
	const replaced = "\ufffd"
	if strings.Contains(*value, replaced) && !bytes.Contains(raw, []byte(replaced)) && !bytes.Contains(bytes.ToLower(raw), []byte(`\ufffd`)) {
		return "", fmt.Errorf("%s has half of a character in it (a lone surrogate)", name)
	}
	return *value, nil
}

// parseWhole reads an int64, also one that was written as 7.0.
func parseWhole(s string) (int64, bool) {
	if whole, zeros, ok := strings.Cut(s, "."); ok && zeros != "" && strings.Trim(zeros, "0") == "" {
		s = whole
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && !strings.HasPrefix(s, "+")
}
