export { offline } from "./offline.ts";
export { type ScriptedModel, type ScriptedReply, scripted } from "./scripted.ts";
