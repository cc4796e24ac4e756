package metrics

import "github.com/prometheus/client_golang/prometheus"

// family is one metric with its labels.
type family struct {
	name, kind, help string
	labels           []string
	desc             *prometheus.Desc
}

// families are all that there are; docs/operations.md has a row for each.
var families []*family

func define(kind, name, help string, labels ...string) *family {
	f := &family{name: "foldhost_" + name, kind: kind, help: help, labels: labels}
	f.desc = prometheus.NewDesc(f.name, help, labels, nil)
	families = append(families, f)
	return f
}

const (
	counter   = "counter"
	gauge     = "gauge"
	histogram = "histogram"
)

// The program and the look itself.
var (
	buildInfo    = define(gauge, "build_info", "Always 1; the labels say which program this is.", "version", "revision", "go_version")
	lookFailures = define(counter, "metrics_failures_total", "Times that a part of the metrics could not be had.")
)

// Sessions and appends.
var (
	appends        = define(counter, "appends_total", "Appends that were committed.")
	appendedEvents = define(counter, "appended_events_total", "Events that were committed by appends.")
	appendErrors   = define(counter, "append_errors_total", "Appends that came to nothing, refused or failed.")
	sessionsLive   = define(gauge, "sessions_live", "Sessions that are live.")
	created        = define(counter, "sessions_created_total", "Sessions that were created, imports and forks among them.")
	opened         = define(counter, "sessions_opened_total", "Times that a session that was cold became live.")
	closed         = define(counter, "sessions_closed_total", "Times that a live session went cold or was deleted.")
	openSeconds    = define(histogram, "session_open_seconds", "How long it took until a cold session was live.")
	closeSeconds   = define(histogram, "session_close_seconds", "How long it took until a live session was cold.")
	slowCloses     = define(counter, "session_slow_closes_total", "Sessions that took too long to go cold, a second unless the program says otherwise.")
	surfaceRows    = define(counter, "surface_rows_written_total", "Rows of surfaces that were stored.")
	surfaceFailed  = define(counter, "surface_row_failures_total", "Rows of surfaces that could not be stored.")
	surfaceUnused  = define(counter, "surface_rows_unused_total", "Rows of surfaces that were there and could not be used.")
)

// Units.
var (
	foldedEvents  = define(counter, "folded_events_total", "Events that were folded, each time that they were.", "plugin", "unit")
	batchEvents   = define(histogram, "fold_batch_events", "Events of the unit that were folded at once.", "plugin", "unit")
	batchSeconds  = define(histogram, "fold_batch_seconds", "How long batches with events of the unit took.", "plugin", "unit")
	eventSeconds  = define(histogram, "fold_event_seconds", "How long single events took that were folded in this process, one of 64.", "plugin", "unit")
	unitFaults    = define(counter, "unit_faults_total", "Cells of the unit that failed.", "plugin", "unit")
	faultedCells  = define(gauge, "unit_faulted_cells", "Cells of live sessions that have failed and are not folded further.", "plugin", "unit")
	behindCells   = define(gauge, "unit_behind_cells", "Cells of live sessions that have something to fold.", "plugin", "unit")
	lagEvents     = define(gauge, "unit_lag_events", "Head minus asOfSeq of the cell that is furthest behind.", "plugin", "unit")
	lagSeconds    = define(gauge, "unit_lag_seconds", "How long the cell that is furthest behind has been behind.", "plugin", "unit")
	oldestSeconds = define(gauge, "unit_oldest_lag_seconds", "The longest that any cell has been behind.", "plugin", "unit")
	unseen        = define(gauge, "sessions_unseen", "Live sessions that were folding each time they were looked at, and whose cells are in no figure.")
)

// Plugins.
var (
	pluginState    = define(gauge, "plugin_state", "1 for the state that the plugin is in, 0 for the others.", "plugin", "presets", "state")
	pluginRestarts = define(counter, "plugin_restarts_total", "Processes of the plugin after its first.", "plugin", "presets")
	pluginDeaths   = define(counter, "plugin_deaths_total", "Processes of the plugin that were up and failed.", "plugin", "presets")
)

// Checkpoint rows and what is read from them.
var (
	coldReads      = define(counter, "cold_reads_total", "Reads of cold sessions by what answered them: rows alone, rows and a tail of the log, or a fold from its beginning.", "step")
	lateReads      = define(counter, "cold_reads_late_total", "Reads of cold sessions that waited long enough and went without some keys.")
	rowsWritten    = define(counter, "checkpoint_rows_written_total", "Rows that were written.")
	pastWritten    = define(counter, "checkpoint_past_rows_written_total", "Rows that were kept for reads of the past.")
	rowWrites      = define(counter, "checkpoint_writes_total", "Writes of rows, each of one session.")
	rowFailures    = define(counter, "checkpoint_write_failures_total", "Writes of rows that failed, and rows that could not be taken.")
	rowsDropped    = define(counter, "checkpoint_writes_dropped_total", "Writes of rows that were dropped because too much was waiting.")
	dirtySeconds   = define(gauge, "checkpoint_dirty_seconds", "The age of the oldest folded event that no written row covers; 0 is none.")
	dirtySessions  = define(gauge, "checkpoint_dirty_sessions", "Sessions with folded events that no written row covers.")
	rowsBacklogged = define(gauge, "checkpoint_waiting_bytes", "Size of the rows that wait to be written.")
)

// The store.
var (
	storeBytes    = define(gauge, "store_size_bytes", "Size of the store's file.")
	storeFree     = define(gauge, "store_free_bytes", "How much of it is free and will be used again.")
	storeWAL      = define(gauge, "store_wal_bytes", "Size of the changes that are not in it yet.")
	storeLogs     = define(gauge, "store_logs", "Logs that are there, one for each session.")
	storeEvents   = define(gauge, "store_events", "Events that are there.")
	storeDeleted  = define(gauge, "store_deleted_logs", "Deleted logs that are still to be swept from the disk.")
	storeFailed   = define(gauge, "store_failed", "1 when the store takes no changes any more.")
	commitChanges = define(histogram, "store_commit_changes", "Changes that shared a commit.")
	commitSeconds = define(histogram, "store_commit_seconds", "How long a commit took, its sync included.")
	syncSeconds   = define(histogram, "store_sync_seconds", "How long a sync of a file took.")
)

// The API.
var (
	requestSeconds = define(histogram, "http_request_seconds", "How long requests took, by route, method and status; a stream takes as long as it is open.", "route", "method", "code")
	streamsOpen    = define(gauge, "streams_open", "Streams that are open.")
	streamsOpened  = define(counter, "streams_opened_total", "Streams that were opened.")
	streamsSlow    = define(counter, "streams_slow_total", "Streams that were closed because their readers took nothing.")
)
