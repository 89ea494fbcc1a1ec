package api

import (
	"errors"
	"net/url"
	"strconv"

	"github.com/engined/engined/contextengine"
)

// parameters reads the query. What is no parameter of ours is ignored.
func (c *call) parameters() (url.Values, error) {
	q, err := url.ParseQuery(c.r.URL.RawQuery)
	if err != nil {
		return nil, kindMalformed.problem("the query can't be read: " + err.Error())
	}
	return q, nil
}

// limit is the asked number of rows, clamped to the largest page.
func (c *call) limit(q url.Values) (int, error) {
	if text := q.Get("limit"); text != "" {
		return c.rows("limit", text)
	}
	return min(defaultPage, c.api.cfg.Limits.Page), nil
}

// rows is a number of rows, clamped to the largest page.
func (c *call) rows(field, text string) (int, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if errors.Is(err, strconv.ErrRange) && text[0] != '-' {
		n, err = int64(c.api.cfg.Limits.Page), nil
	}
	if err != nil || n < 1 {
		return 0, &contextengine.InvalidError{Field: field, Reason: "must be an integer of 1 or more"}
	}
	return int(min(n, int64(c.api.cfg.Limits.Page))), nil
}

// seq reads a seq or, for after, the place before the first one; absent is 0.
func seq(field, text string, least int64) (int64, error) {
	if text == "" && least == 0 {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least {
		return 0, &contextengine.InvalidError{Field: field, Reason: "must be an integer of " + strconv.FormatInt(least, 10) + " or more"}
	}
	return n, nil
}

func limitParam() queryParam {
	return queryParam{name: "limit", in: "query", integer: true, least: 1, doc: "Rows of a page; a larger number than the limit is clamped to it."}
}
