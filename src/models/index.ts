export { type OfflineOptions, offline } from "./offline.ts";
export { type ScriptedModel, type ScriptedOptions, type ScriptedReply, scripted } from "./scripted.ts";
