export { localBackend } from "./local-backend.ts";
