export { SkeinSession, type SkeinSessionOptions } from "./skein-session.ts";
