export { EXPORT_FORMATS, type ExportFormat, type ExportOptions, exportSession } from "./export-session.ts";
export { type ImportOptions, importSession } from "./import-session.ts";
export { readLines } from "./read-lines.ts";
export { createSanitizer, type Sanitizer, type SanitizerOptions, sanitizeText } from "./sanitizer.ts";
