import { registerBuiltInTools } from "../agent/built-in-tools.ts";
import { workspaceTools } from "./workspace-tools.ts";

registerBuiltInTools(workspaceTools);
