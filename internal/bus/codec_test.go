package bus

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const sid = "01890a5d-ac96-774b-bcce-b302099a8057"

func TestCodecRoundTrip(t *testing.T) {
	t.Parallel()
	for _, tenant := range []string{"default", "租户 <&>", strings.Repeat("\x00", MaxTenantBytes)} {
		j := Job{Tenant: tenant, SID: sid, Epoch: 1 << 62, Attempt: 7}
		data, err := encodeJob(j)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeJob(data)
		if diff := cmp.Diff(j, got); diff != "" || err != nil {
			t.Errorf("job differs (%v): %s", err, diff)
		}
		n := Notice{Type: EpochRotated, Tenant: tenant, SID: sid, Seq: 1 << 62, Epoch: 3}
		if data, err = encodeNotice(n); err != nil {
			t.Fatal(err)
		}
		gotN, err := decodeNotice(data)
		if diff := cmp.Diff(n, gotN); diff != "" || err != nil {
			t.Errorf("notice differs (%v): %s", err, diff)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	good := `{"v":1,"tenant":"a","sid":"` + sid + `","epoch":1,"attempt":0}`
	if _, err := decodeJob([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		data string
		want error
	}{
		"empty":          {"", ErrMalformed},
		"not json":       {"hello", ErrMalformed},
		"array":          {"[1]", ErrMalformed},
		"null":           {"null", ErrMalformed},
		"no version":     {strings.Replace(good, `"v":1,`, "", 1), ErrMalformed},
		"version 0":      {strings.Replace(good, `"v":1`, `"v":0`, 1), ErrMalformed},
		"newer version":  {`{"v":2,"whatever":[]}`, ErrVersion},
		"unknown field":  {strings.Replace(good, `"epoch"`, `"text":"hi","epoch"`, 1), ErrMalformed},
		"trailing":       {good + "{}", ErrMalformed},
		"trailing junk":  {good + "x", ErrMalformed},
		"too large":      {good + strings.Repeat(" ", MaxMessageBytes), ErrMalformed},
		"no tenant":      {strings.Replace(good, `"a"`, `""`, 1), ErrMalformed},
		"long tenant":    {strings.Replace(good, `"a"`, `"`+strings.Repeat("a", MaxTenantBytes+1)+`"`, 1), ErrMalformed},
		"sid in capital": {strings.Replace(good, sid, strings.ToUpper(sid), 1), ErrMalformed},
		"sid in braces":  {strings.Replace(good, sid, "{"+sid+"}", 1), ErrMalformed},
		"sid no uuid":    {strings.Replace(good, sid, "agent:main", 1), ErrMalformed},
		"negative epoch": {strings.Replace(good, `"epoch":1`, `"epoch":-1`, 1), ErrMalformed},
		"float epoch":    {strings.Replace(good, `"epoch":1`, `"epoch":1.5`, 1), ErrMalformed},
		"huge epoch":     {strings.Replace(good, `"epoch":1`, `"epoch":9223372036854775808`, 1), ErrMalformed},
		"a notice":       {`{"v":1,"type":"epoch_rotated","tenant":"a","sid":"` + sid + `","seq":1,"epoch":1}`, ErrMalformed},
	} {
		if _, err := decodeJob([]byte(tc.data)); !errors.Is(err, tc.want) {
			t.Errorf("%s: got %v, want %v", name, err, tc.want)
		}
	}
}

func TestDecodeErrorsQuoteNothing(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	for _, data := range []string{secret, `{"v":"` + secret + `"}`, `{"v":1,"` + secret + `":1}`, `{"v":1,"tenant":"a","sid":"` + secret + `"}`, `{"v":1,"type":"` + secret + `"}`} {
		_, errJob := decodeJob([]byte(data))
		_, errNotice := decodeNotice([]byte(data))
		for _, err := range []error{errJob, errNotice} {
			if err == nil || strings.Contains(err.Error(), secret) {
				t.Errorf("%s: error %v", data, err)
			}
		}
	}
}

func TestEncodeRefuses(t *testing.T) {
	t.Parallel()
	for _, n := range []Notice{
		{Type: "a.b", Tenant: "a", SID: sid, Seq: 1},
		{Type: "", Tenant: "a", SID: sid, Seq: 1},
		{Type: TurnCompleted, Tenant: "a", SID: sid, Seq: 0},
		{Type: TurnCompleted, Tenant: "a\xff", SID: sid, Seq: 1},
	} {
		if _, err := encodeNotice(n); !errors.Is(err, ErrMalformed) {
			t.Errorf("%+v: %v", n, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	job, _ := encodeJob(Job{Tenant: "t", SID: sid, Epoch: 2, Attempt: 1})
	notice, _ := encodeNotice(Notice{Type: TurnCompleted, Tenant: "t", SID: sid, Seq: 9, Epoch: 2})
	for _, seed := range [][]byte{job, notice, nil, []byte(`{"v":2}`), []byte(`{"V":1,"v":1}`), bytes.Repeat([]byte("["), 5000)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if j, err := decodeJob(data); err == nil {
			again, err := encodeJob(j)
			if err != nil || len(again) > MaxMessageBytes {
				t.Fatalf("accepted job does not encode: %v", err)
			}
			if back, err := decodeJob(again); err != nil || back != j {
				t.Fatalf("job changed: %+v %+v %v", j, back, err)
			}
		} else if !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrVersion) {
			t.Fatalf("unclassified error: %v", err)
		}
		if n, err := decodeNotice(data); err == nil {
			again, err := encodeNotice(n)
			if err != nil {
				t.Fatal(err)
			}
			if back, err := decodeNotice(again); err != nil || back != n {
				t.Fatalf("notice changed: %+v %+v %v", n, back, err)
			}
		} else if !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrVersion) {
			t.Fatalf("unclassified error: %v", err)
		}
	})
}
