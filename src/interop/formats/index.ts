export type {
  ForeignBody,
  ForeignDraft,
  ForeignEntry,
  ForeignFormat,
  ForeignHeader,
  ForeignLine,
  ForeignLogSink,
  ForeignReader,
  ForeignSink,
  ForeignSource,
  FormatName,
  Handoff,
} from "./foreign-format.ts";
export { type LostLine, ReadReport, WriteReport } from "./foreign-report.ts";
export { detectFormat, FOREIGN_FORMATS, foreignFormat, formatOfText } from "./formats.ts";
export { type ForeignReading, type ForeignSession, readForeign } from "./read-foreign.ts";
export { type ForeignWriting, type WriteForeignOptions, writeForeign } from "./write-foreign.ts";
export { type FollowedPath, type FollowFilesOptions, followFiles } from "./follow-files.ts";
export { FileImport, type ImportedFile, type ImportedSession, importForeign } from "./import-file.ts";
export { type ImportFilesOptions, type ImportStep, importFiles } from "./import-files.ts";
export { ImportCache, importCacheName, type CachedFile } from "./import-cache.ts";
export type { ImportTarget } from "./stored-log.ts";
