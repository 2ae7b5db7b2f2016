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
export { detectFormat, FOREIGN_FORMATS, foreignFormat } from "./formats.ts";
export { type ForeignReading, type ForeignSession, readForeign } from "./read-foreign.ts";
export { type ForeignWriting, type WriteForeignOptions, writeForeign } from "./write-foreign.ts";
