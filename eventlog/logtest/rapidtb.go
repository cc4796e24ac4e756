package logtest

import (
	"context"
	"io"
	"testing"

	"pgregory.net/rapid"
)

// rapidTB lets the steps of a kit fail one run of a property, which rapid then makes smaller.
type rapidTB struct {
	testing.TB
	*rapid.T
}

func (t rapidTB) Context() context.Context          { return t.T.Context() }
func (t rapidTB) Cleanup(f func())                  { t.T.Cleanup(f) }
func (t rapidTB) Output() io.Writer                 { return t.T.Output() }
func (t rapidTB) Error(args ...any)                 { t.T.Error(args...) }
func (t rapidTB) Errorf(format string, args ...any) { t.T.Errorf(format, args...) }
func (t rapidTB) Fail()                             { t.T.Fail() }
func (t rapidTB) FailNow()                          { t.T.FailNow() }
func (t rapidTB) Failed() bool                      { return t.T.Failed() }
func (t rapidTB) Fatal(args ...any)                 { t.T.Fatal(args...) }
func (t rapidTB) Fatalf(format string, args ...any) { t.T.Fatalf(format, args...) }
func (t rapidTB) Helper()                           { t.T.Helper() }
func (t rapidTB) Log(args ...any)                   { t.T.Log(args...) }
func (t rapidTB) Logf(format string, args ...any)   { t.T.Logf(format, args...) }
func (t rapidTB) Name() string                      { return t.T.Name() }
func (t rapidTB) Skip(args ...any)                  { t.T.Skip(args...) }
func (t rapidTB) SkipNow()                          { t.T.SkipNow() }
func (t rapidTB) Skipf(format string, args ...any)  { t.T.Skipf(format, args...) }
