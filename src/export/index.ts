export { EXPORT_FORMATS, type ExportFormat, type ExportOptions, exportSession } from "./export-session.ts";
export { type ImportOptions, importSession } from "../import/import-session.ts";
export { readLines } from "../import/read-lines.ts";
export { createSanitizer, type Sanitizer, type SanitizerOptions, sanitizeText } from "./sanitizer.ts";
