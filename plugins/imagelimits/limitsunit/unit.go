// Package limitsunit is the unit of the imagelimits plugin: what images a session accepts.
//
// The limits come from the plugin's config and are constant while it runs. The unit folds nothing, so that clients find it in
// every baseline and no event ever sends it.
package limitsunit

import (
	"slices"

	"github.com/foldhost/foldhost/sdk"
)

// Limits are the plugin's config and the unit's value. Fields that a config leaves out have the defaults of Default.
type Limits struct {
	// MaxImageBytes bounds one image as it is sent, before base64.
	MaxImageBytes int64 `json:"maxImageBytes" jsonschema:"minimum=1"`
	// MaxImagesPerMessage bounds how many images one message carries; 0 allows none.
	MaxImagesPerMessage int64 `json:"maxImagesPerMessage" jsonschema:"minimum=0"`
	// MaxMessageImageBytes bounds the images of one message together.
	MaxMessageImageBytes int64 `json:"maxMessageImageBytes" jsonschema:"minimum=1"`
	// MaxImagePixels bounds width times height.
	MaxImagePixels int64 `json:"maxImagePixels" jsonschema:"minimum=1"`
	// MaxImageDimension bounds width and height each, in pixels.
	MaxImageDimension int64 `json:"maxImageDimension" jsonschema:"minimum=1"`
	// MediaTypes are the formats that are accepted.
	MediaTypes []string `json:"mediaTypes" jsonschema:"nonnull,minItems=1,uniqueItems=true"`
}

// Default returns the limits that hold where the config says nothing. They fit what the large model providers accept.
func Default() Limits {
	return Limits{
		MaxImageBytes:        5 << 20,  // 5 MiB: the smallest limit per image among the providers
		MaxImagesPerMessage:  20,       // more make a request that providers shrink or refuse
		MaxMessageImageBytes: 20 << 20, // 20 MiB: a request, with its base64, stays below 32 MiB
		MaxImagePixels:       64 << 20, // 64 Mi pixels, one square of the largest dimension: 256 MiB once decoded
		MaxImageDimension:    8000,     // pixels: larger images are refused, not shrunk
		MediaTypes:           []string{"image/png", "image/jpeg", "image/gif", "image/webp"},
	}
}

// New returns the unit that shows these limits.
func New(limits Limits) sdk.Unit {
	limits.MediaTypes = slices.Clone(limits.MediaTypes)
	return sdk.ProjectionDefinition[*struct{}, Limits]{
		Key:          "imageLimits",
		StateVersion: 1,
		View:         func(*struct{}) Limits { return limits },
		StateSchema:  []byte(`{"type":"null"}`),
	}
}
