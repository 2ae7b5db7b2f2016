export { type RecordUsageOptions, SkeinSession, type SkeinSessionOptions, type UsageResult } from "./skein-session.ts";
