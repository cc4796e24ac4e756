// The client of foldhost for browsers and Node. docs/server.md in the repository has what the calls mean.
export { Client } from "./client.js";
export type { ClientOptions } from "./request.js";
export { AnswerError, FoldhostError, NetworkError, type Code } from "./errors.js";
export type * from "./frames.js";
export { fromStart, type Followed, type StreamOptions } from "./stream.js";
export { Store, type Entry, type Face } from "./store.js";
export type { Tracked, TrackedSet, TrackAllOptions, TrackOptions, TrackState } from "./track.js";
export { rawItem, type RawItem } from "./types.js";
export type {
  Appended,
  AppendOptions,
  Backup,
  BackupOptions,
  Block,
  CallOptions,
  CheckOptions,
  CheckReport,
  Compaction,
  Created,
  Difference,
  Event,
  EventPage,
  EventsQuery,
  ExportOptions,
  ForkOptions,
  Header,
  HistoryPage,
  HistoryQuery,
  Imported,
  ImportOptions,
  Item,
  ListPage,
  ListQuery,
  Log,
  Messages,
  NewSession,
  Offer,
  Once,
  Place,
  Plugin,
  PresetQuery,
  Readiness,
  RetryQuery,
  Session,
  StoreStats,
  Surface,
  SurfaceOp,
  Tool,
  ToolResult,
  Unavailable,
  ValuesQuery,
  Verification,
} from "./types.js";
