import { type Tool, workspaceTools } from "../../index.ts";

/** Which calls run without a person's word: all, those that only touch files, or those that only read. */
export type ApprovalPolicy = "all" | "writes" | "none";

/** Every policy, the strictest first. */
export const APPROVAL_POLICIES: readonly ApprovalPolicy[] = ["none", "writes", "all"];

const READS: ReadonlySet<string> = new Set(["read_workspace_file", "list_workspace_files", "workspace_path_exists"]);
const WRITES: ReadonlySet<string> = new Set(["write_workspace_file", "edit_workspace_file"]);

/** The workspace tools; those that the policy does not let through ask first. */
export function toolsUnder(policy: ApprovalPolicy): readonly Tool[] {
  return workspaceTools.map((tool) => (runsFreely(policy, tool.schema.name) ? tool : asking(tool)));
}

function runsFreely(policy: ApprovalPolicy, name: string): boolean {
  return policy === "all" || READS.has(name) || (policy === "writes" && WRITES.has(name));
}

function asking(tool: Tool): Tool {
  return { ...tool, needsApproval: () => true };
}
