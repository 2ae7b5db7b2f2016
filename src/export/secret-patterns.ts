import { defined } from "../internal/defined.ts";

/** Patterns of vendors' keys and tokens, and of our own, recognised by their prefix. Each must contain a digit. */
const VENDOR_TOKENS: readonly string[] = [
  "sk-[A-Za-z0-9_-]{16,}",
  "[prs]k_(?:live|test)_[A-Za-z0-9]{16,}",
  "whsec_[A-Za-z0-9+/=]{16,}",
  "gh[opsru]_[A-Za-z0-9]{20,}",
  "github_pat_[A-Za-z0-9_]{20,}",
  "gl(?:pat|ptt|dt|rt)-[A-Za-z0-9_-]{16,}",
  "xox[a-z]-[A-Za-z0-9-]{10,}",
  "xapp-[A-Za-z0-9-]{20,}",
  "AIza[A-Za-z0-9_-]{30,}",
  "ya29\\.[A-Za-z0-9._-]{20,}",
  "GOCSPX-[A-Za-z0-9_-]{20,}",
  "1//0[A-Za-z0-9_-]{30,}",
  "A(?:KIA|SIA|BIA|CCA)[A-Z0-9]{16,}",
  "hf_[A-Za-z0-9]{20,}",
  "npm_[A-Za-z0-9]{30,}",
  "pypi-[A-Za-z0-9_-]{40,}",
  "dckr_pat_[A-Za-z0-9_-]{20,}",
  "SG\\.[A-Za-z0-9_-]{16,}\\.[A-Za-z0-9_-]{16,}",
  "do[opr]_v1_[a-f0-9]{40,}",
  "shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32,}",
  "gsk_[A-Za-z0-9]{20,}",
  "xai-[A-Za-z0-9]{20,}",
  "r8_[A-Za-z0-9]{20,}",
  "pplx-[A-Za-z0-9]{20,}",
  "nvapi-[A-Za-z0-9_-]{20,}",
  "lin_api_[A-Za-z0-9]{20,}",
  "AGE-SECRET-KEY-1[A-Z0-9]{40,}",
  "\\d{8,10}:AA[A-Za-z0-9_-]{33}",
  "skein_[A-Za-z0-9_-]{40,}",
  "hv[bsr]\\.[A-Za-z0-9_-]{20,}",
  "[bsr]\\.[A-Za-z0-9]{24}(?![A-Za-z0-9_.(-])",
  "sntry[a-z]_[A-Za-z0-9+/=_-]{32,}",
  "gl(?:cbt|ft|imt|agent|oas|soat|ffct)-[A-Za-z0-9_-]{16,}",
  "glsa_[A-Za-z0-9_]{32,}",
  "glc_[A-Za-z0-9+/=]{32,}",
  "ABSK[A-Za-z0-9+/=]{100,}",
  "LTAI[A-Za-z0-9]{12,30}",
  "dapi[a-f0-9]{32}",
  "dp\\.(?:pt|st|ct|sa|scim|audit)\\.[A-Za-z0-9]{40,}",
  "dt0[a-z]\\d{2}\\.[A-Z0-9]{24}\\.[A-Z0-9]{64}",
  "(?:secret|ntn)_[A-Za-z0-9]{40,}",
  "key-[a-f0-9]{32}",
  "[a-f0-9]{32}-us\\d{1,2}",
  "SK[a-f0-9]{32}",
  "sq0(?:atp|csp|idp)-[A-Za-z0-9_-]{22,}",
  "pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.-]{32,}",
  "PMAK-[A-Za-z0-9-]{50,}",
  "NRAK-[A-Z0-9]{27}",
  "ATATT3[A-Za-z0-9_=-]{60,}",
  "ATBB[A-Za-z0-9]{28,}",
  "f[mo][12]_[A-Za-z0-9+/=_-]{40,}",
  "sbp_[a-f0-9]{40}",
  "sb_secret_[A-Za-z0-9_-]{20,}",
  "nfp_[A-Za-z0-9]{36}",
  "HRKU-[A-Za-z0-9_-]{30,}",
  "rubygems_[a-f0-9]{48}",
  "cio[A-Za-z0-9]{32}(?![A-Za-z0-9])",
  "[A-Za-z0-9]{14}\\.atlasv1\\.[A-Za-z0-9_-]{60,}",
  "pul-[a-f0-9]{40}",
  "tskey-[A-Za-z0-9-]{20,}",
  "fw_[A-Za-z0-9]{20,}",
  "tvly-[A-Za-z0-9-]{20,}",
  "lsv2_(?:pt|sk)_[a-f0-9_]{40,}",
  "pat[A-Za-z0-9]{14}\\.[a-f0-9]{64}",
  "sl\\.[A-Za-z0-9_-]{100,}",
  "CFPAT-[A-Za-z0-9_-]{40,}",
  "ops_eyJ[A-Za-z0-9_-]{40,}",
];

/** A pattern that finds secrets: the group `secret` is replaced, the group `before` is kept in front of it. */
export interface SecretPattern {
  readonly pattern: RegExp;
  /** Confirms that a match is a secret (default: every match is). */
  readonly confirms?: (found: string) => boolean;
  /**
   * The maximum number of characters of a match, for a pattern that is slow on long texts: they are searched in parts, so that
   * a server can do other work between two of them.
   */
  readonly matchMax?: number;
}

/**
 * The start of a word. It may follow a JSON escape, a percent-encoded byte or a terminal colour, although these end in a
 * letter or a digit.
 */
const AFTER_ESCAPE = String.raw`(?<=\\[nrtbf])|(?<=%[0-9A-Fa-f]{2})|(?<=\\u[0-9A-Fa-f]{4})|(?<=\u001b\[[0-9;]{0,10}m)`;
const START = `(?:(?<![A-Za-z0-9])|${AFTER_ESCAPE})`;
/** For words with dashes: without it, a word would be matched again from each of its dashes, in quadratic time. */
const START_OF_WORD = `(?:(?<![A-Za-z0-9_-])|${AFTER_ESCAPE})`;
const SPACE = "(?:[ \\t+]|%20)";

const JSON_WEB_TOKEN = "eyJ[A-Za-z0-9_-]{10,}\\.[A-Za-z0-9_-]{10,}(?:\\.[A-Za-z0-9_-]*){0,3}";
const PRIVATE_KEY = `${SPACE}(?:[A-Z0-9]{1,20}${SPACE}){0,4}PRIVATE${SPACE}KEY(?:${SPACE}BLOCK)?-----`;

/** The end of a secret's name; any prefix may precede it. */
const NAME = String.raw`(?:(?:api|access|auth|account|private|secret|signing|encryption|master|shared|storage|client|service)[_-]?key(?:[_-]?id)?|secret|token|passw(?:or)?d|passphrase|passcode|pwd|credentials?)s?\d{0,3}`;
/** The end of a secret's name for environment variables, where names that end in `_KEY` or `_PASS` are secrets, too. */
const VARIABLE = String.raw`(?:API_?KEY|_KEY|_PASS|SECRET|TOKEN|PASSW(?:OR)?D|PASSPHRASE|PASSCODE|SSHPASS|REDISCLI_AUTH|(?<=[A-Z0-9_])(?<!OLD)PWD|CREDENTIALS?)\d{0,3}`;
const QUOTE = String.raw`\\{0,7}["'\x60]`;
const QUOTED = "[^\\n]{1,4096}?(?=\\k<quote>)";
/** Names whose value is a secret even if it is a plain word, if the line holds nothing else. */
const PASSWORD = String.raw`(?:passw(?:or)?d|passphrase|passcode|pwd|secret)s?\d{0,3}`;
const SCHEME = `(?:[A-Za-z][A-Za-z0-9-]{0,30}${SPACE}{1,8})?`;
/** Like `QUOTED`, for quoted texts that contain escaped quotes. */
const QUOTED_WHOLE = String.raw`[^\n]{1,4096}?(?<!\\)(?=\k<quote>)`;
const PARAMETER = String.raw`[\w-]{1,40}=(?:\\{0,7}"[^"\\\n]{0,2048}\\{0,7}"|[^\s",\\]{0,2048})`;
/** A parameter whose value is quoted. */
const QUOTED_PARAMETER = String.raw`[\w-]{1,40}=\\{0,7}"[^"\\\n]{6,2048}\\{0,7}"`;
const COOKIE = String.raw`[\w.!#$%&*+^|~-]{1,128}=[^\s;,"'\\]{1,4096}`;
const ASSIGN = String.raw`[ \t]{0,8}(?:=>|:=|[:=]|%3[AD])[ \t]{0,8}`;

/** The end of a name in quotes, also as a key in brackets: `headers["Authorization"]`. */
const NAME_END = `(?:${QUOTE}(?:[ \\t]{0,4}\\])?)?`;
/** Between a name and its value in an object with both: `"name": "DB_PASSWORD", "value": "`, also in YAML. */
const VALUE_OF_NAME = String.raw`(?:${QUOTE})?(?:,|(?=\s|\\{1,7}n))(?:\s|\\{1,7}n){0,80}(?:${QUOTE})?value(?:${QUOTE})?[ \t]{0,8}:[ \t]{0,8}`;
/** The name of an object with a name and a value. */
const NAMED = String.raw`(?<![\w-])(?:name|key)(?:${QUOTE})?[ \t]{0,8}:[ \t]{0,8}(?:${QUOTE})?[\w-]{0,60}?(?:${NAME}|_key|_pass|authorization)`;

/** Between an option and its value: a space, an equals sign, or `", "` in a list of arguments. */
const AFTER_OPTION = String.raw`(?:[ \t]{1,8}|=|["'],[ \t]{0,8}["'])`;
/** The part of a command before an option. A backslash at the end of a line continues the command. */
const UP_TO = String.raw`(?:[^\n|;]|\\\r?\n){0,500}?[\s"']`;
const LOGIN = String.raw`["']?[^\s:"'-][^\s:"']{0,255}:`;
/** The whitespace between words of a .netrc file, also escaped in JSON. */
const GAP = String.raw`(?:\s|\\[nrt]){1,20}`;
const WORD = String.raw`[^\s\\"']{1,255}`;
const NETRC = `(?:${GAP}(?:login|account)${GAP}["']?${WORD}["']?)`;
/** Between the words of a command: blanks, or `", "` in a list of arguments. */
const NEXT = String.raw`(?:[ \t]{1,8}|["'],[ \t]{0,8}["'])`;

/** Commands that accept a password, each with its option for it. */
const COMMANDS: readonly (readonly [command: string, option: string])[] = [
  [
    `(?:docker|podman|nerdctl|buildah|skopeo|helm|oras|crane|az)${NEXT}(?:[\\w-]{1,20}${NEXT}){0,2}login`,
    `-p(?:${AFTER_OPTION})?`,
  ],
  ["vault", `login${NEXT}`],
  ["aws", `configure${NEXT}set${NEXT}[\\w.-]{0,80}(?:secret_access_key|session_token)${NEXT}`],
  ["(?:npm|pnpm|yarn)", `set${NEXT}[^\\s"']{0,200}:_(?:authToken|password|auth)(?:=|${NEXT})`],
  ["sshpass", `-p(?:${AFTER_OPTION})?`],
  ["(?:mysql|mysqldump|mysqladmin|mysqlimport|mysqlcheck|mariadb|mariadb-dump|7za?)", "-p"],
  ["(?:mongo|mongosh|mongodump|mongorestore|mongoimport|mongoexport)", `-p${AFTER_OPTION}`],
  ["redis-cli", `(?:-a|--pass)${AFTER_OPTION}`],
  ["(?:zip|unzip|zipcloak)", `-P${AFTER_OPTION}`],
  ["ldap(?:search|add|modify|delete|passwd|whoami)", `-w${AFTER_OPTION}`],
  ["openssl", `-pass(?:in|out)?[ \\t]{1,8}["']?pass:`],
  ["openssl", `-k${AFTER_OPTION}`],
  ["twine", `-p${AFTER_OPTION}`],
  ["(?:sqlcmd|bcp)", `-P${AFTER_OPTION}`],
  ["(?:smbclient|rpcclient)", `(?:-U|--user)${AFTER_OPTION}[^\\s%"']{1,255}%`],
  ["lftp", `-u${AFTER_OPTION}[^\\s,"']{1,255},`],
  ["gh", `--with-token[ \\t]{0,8}<<<[ \\t]{0,8}["']?`],
];

const COMMAND_OPTION = COMMANDS.map(([command, option]) => `${command}${UP_TO}${option}`).join("|");

/** More than the characters of a command up to an option, with a value of at most 4,096. */
const COMMAND_MAX = 8 * 1024;
/** More than the characters of a command up to an option, with 101 cookies. */
const COMMAND_WITH_COOKIES_MAX = 512 * 1024;

/** Every way in which a secret is recognised, the most certain first. */
export const SECRET_PATTERNS: readonly SecretPattern[] = [
  // A key that was cut off before its end is a secret up to the end of the text.
  { pattern: new RegExp(`(?<secret>-----BEGIN${PRIVATE_KEY}[\\s\\S]*?(?:-----END${PRIVATE_KEY}|$))`, "g") },
  { pattern: new RegExp(`${START}(?<secret>${VENDOR_TOKENS.join("|")})`, "g"), confirms: (found) => /\d/.test(found) },
  { pattern: new RegExp(`${START_OF_WORD}(?<secret>${JSON_WEB_TOKEN})`, "g") },
  { pattern: /(?<before>:\\?\/\\?\/[^\s/:@"'<>]{0,256}:)(?<secret>[^\s/"'<>]{1,256})(?=@)/g, confirms: isTelling },
  {
    pattern: /(?<before>%3A%2F%2F(?:(?!%3A|%40)[^\s&"'<>]){0,256}%3A)(?<secret>(?:(?!%40)[^\s&"'<>]){1,256})(?=%40)/gi,
    confirms: isTelling,
  },
  { pattern: /(?<before>hooks\.slack\.com\/(?:services|workflows)\/)(?<secret>[A-Za-z0-9/_-]{20,})/g },
  { pattern: /(?<before>discord(?:app)?\.com\/api\/webhooks\/\d{1,30}\/)(?<secret>[A-Za-z0-9_-]{20,})/g },
  {
    pattern: new RegExp(
      `(?<before>${START}(?:Bearer|Basic)${SPACE}{1,8})(?<secret>[A-Za-z0-9._~+/%-]{8,}={0,2})`,
      "gi",
    ),
    confirms: (found) => found.length >= 20 || /[\d=]/.test(found),
  },
  // A URL parameter. Must precede the patterns below: they would read its plus sign as the space after a scheme.
  named(`[?&;][\\w.-]{0,40}?(?:${NAME}|authorization|sig|signature)=`, "[^&#\\s\"'<>\\\\]{1,4096}"),
  // An HTTP header, quoted as in a command or a program, or unquoted.
  // If the header contains unescaped quotes of the same kind, a pattern below matches its parameters.
  named(
    `(?<quote>${QUOTE})(?:proxy-)?authorization[ \\t]{0,4}:(?![ \\t]{0,8}${SCHEME}[\\w-]{1,40}=\\k<quote>)[ \\t]{0,8}${SCHEME}`,
    QUOTED_WHOLE,
  ),
  named(
    `authorization${NAME_END}(?:${ASSIGN}|,[ \\t]{0,8})(?<quote>${QUOTE})(?!value\\k<quote>)${SCHEME}`,
    QUOTED_WHOLE,
  ),
  named(
    `(?<![\\w-])(?:-H|--header)${AFTER_OPTION}?(?<quote>${QUOTE})[\\w-]{0,40}?${NAME}[ \\t]{0,4}:[ \\t]{0,8}`,
    QUOTED_WHOLE,
  ),
  {
    pattern: new RegExp(
      `(?<before>authorization${ASSIGN}${SCHEME})(?<secret>${PARAMETER}(?:,[ \\t]{0,4}${PARAMETER}){1,20}|${QUOTED_PARAMETER}|${bare(8)})`,
      "gi",
    ),
    confirms: (found) => isTelling(found) && (looksRandom(found) || /^[\w-]+=(?:.*,|\\*")/.test(found)),
  },
  named("AWS4-HMAC-SHA256[^\\n\"']{1,500}?Signature=", "(?!\\[)[^\\s,\"'\\\\]{8,128}"),
  named(
    `(?:set-)?cookie2?(?:${QUOTE})?[ \\t]{0,4}[:=][ \\t]{0,8}(?:${QUOTE})?`,
    `${COOKIE}(?:;[ \\t]{0,4}${COOKIE}){0,100}`,
  ),
  {
    pattern: new RegExp(
      `(?<before>^[ \\t<>*]{0,8}(?:proxy-)?authorization[ \\t]{0,4}:[ \\t]{0,8})(?<secret>${bare(6)})(?=[ \\t]{0,8}\\r?$)`,
      "gim",
    ),
    confirms: (found) => isPlainPassword(found) && /\d/.test(found) && !/^oauth/i.test(found),
  },
  named(
    `(?<![\\w-])curl${UP_TO}(?:-[A-Za-z0-9#]{0,10}[uU]|--user|--proxy-user|--auth)(?:${AFTER_OPTION})?${LOGIN}`,
    "[^\\s\"'\\\\]{1,256}",
    { matchMax: COMMAND_MAX },
  ),
  named(`(?<![\\w-])(?:http|https|xh)${UP_TO}(?:-a|--auth)(?:${AFTER_OPTION})${LOGIN}`, "[^\\s\"'\\\\]{1,256}", {
    matchMax: COMMAND_MAX,
  }),
  named(
    `(?<![\\w-])curl${UP_TO}(?:-[A-Za-z0-9#]{0,10}b|--cookie)(?:${AFTER_OPTION})?["']?`,
    `${COOKIE}(?:;[ \\t]{0,4}${COOKIE}){0,100}`,
    { exactCase: true, matchMax: COMMAND_WITH_COOKIES_MAX },
  ),
  named(`(?<![\\w-])(?:${COMMAND_OPTION})(?<quote>["'])(?!,)`, QUOTED, { exactCase: true, matchMax: COMMAND_MAX }),
  named(`(?<![\\w-])(?:${COMMAND_OPTION})`, `(?!-)${bare(1)}`, { exactCase: true, matchMax: COMMAND_MAX }),
  named(
    `(?<![\\w-])(?:echo|printf)(?:[ \\t]{1,8}-n|[ \\t]{1,8}["']?%s(?:\\\\\\\\?n)?["']?)?[ \\t]{1,8}["']?`,
    `[^\\s"'|\\\\]{1,256}(?=["']?[ \\t]{0,8}\\|[^\\n|;]{0,200}--password-stdin)`,
  ),
  named(`(?<![\\w-])(?:machine${GAP}${WORD}|default)${NETRC}{1,2}${GAP}password${GAP}["']?`, WORD),
  named(`(?<![\\w-])machine${GAP}(?:localhost|[\\w-]{1,63}\\.[\\w.-]{1,190})${GAP}password${GAP}["']?`, WORD),
  { pattern: /(?<before>\/bot)(?<secret>\d{6,12}:[A-Za-z0-9_-]{30,64})/g },
  { pattern: /(?<before>:\/\/)(?<secret>[0-9a-f]{32}(?::[0-9a-f]{32})?)(?=@)/g },
  {
    pattern: new RegExp(
      `(?<before>[_"'](?:auth)(?:${QUOTE})?${ASSIGN}(?:${QUOTE})?)(?<secret>[A-Za-z0-9+/]{8,4096}={0,2})`,
      "gi",
    ),
    confirms: isEncodedLogin,
  },
  named(`${VARIABLE}=(?<quote>${QUOTE})`, QUOTED, { exactCase: true }),
  named(`${VARIABLE}=`, bare(1), { exactCase: true }),
  named(`(?:${NAME}|(?<=[A-Z0-9])_(?:KEY|PASS))${NAME_END}${ASSIGN}(?<quote>${QUOTE})`, QUOTED),
  // The arguments of a call, such as `set("X-Api-Key", "…")`.
  named(`${NAME}${QUOTE},[ \\t]{0,8}(?<quote>${QUOTE})`, "[^\\s]{8,200}?(?=\\k<quote>[ \\t]{0,4}\\))", {
    random: true,
  }),
  named(`${NAMED}${VALUE_OF_NAME}(?<quote>${QUOTE})`, QUOTED),
  named(`${NAMED}${VALUE_OF_NAME}`, bare(1)),
  named(`--(?:[\\w-]{0,40}?${NAME}|pass)(?:=|[ \\t]{1,8}|${QUOTE},[ \\t]{0,8})(?<quote>${QUOTE})`, QUOTED),
  named(`--(?:[\\w-]{0,40}?${NAME}|pass)(?:=|[ \\t]{1,8})`, `(?!-)${bare(1)}`),
  named(`${NAME}(?:${QUOTE})?${ASSIGN}`, bare(8), { random: true }),
  {
    pattern: new RegExp(`(?<before>(?:^|[\\s,{(?&;])[\\w.-]{0,40}?${PASSWORD}=)(?<secret>${bare(1)})`, "gi"),
    confirms: isPlainPassword,
  },
  {
    pattern: new RegExp(
      `(?<before>^[ \\t>+*-]{0,40}[\\w.-]{0,40}?${PASSWORD}[ \\t]{0,8}[:=][ \\t]{0,8})(?<secret>${bare(1)})(?=[,;]?[ \\t]{0,8}(?:#|\\r?$))`,
      "gim",
    ),
    confirms: isPlainPassword,
  },
];

/** Values that are not secrets: placeholders, variables, words of a schema. */
const HARMLESS =
  /^(?:\[secret\b.*|[*x.…]+|<[^>]*>|\$\{[^}]*\}?|\$[A-Z_][A-Z0-9_]*|\$\(.*|%\w+%|\{\{.*\}\}|process\.env\b.*|os\.environ\b.*|null|undefined|[Nn]one|nil|[Tt]rue|[Ff]alse|string|number|required|optional|\d{1,3})$/s;
const SECRET_NAME = new RegExp(`(?:${NAME}|_key|_pass|authorization|^(?:set-)?cookie2?)$`, "i");

/** Whether a name is that of a secret. */
export function isSecretName(name: string): boolean {
  return SECRET_NAME.test(name);
}

/** Whether an object has a secret as its `value`, according to its `name` or `key`, as a header or a variable often has. */
export function isSecretPair(value: object): boolean {
  const { name, key = name } = value as { readonly name?: unknown; readonly key?: unknown };
  return "value" in value && typeof key === "string" && isSecretName(key);
}

/** Whether a value in the position of a secret is a real one, and not a placeholder or a variable. */
export function isTelling(value: string): boolean {
  return value.trim() !== "" && !HARMLESS.test(value.trim());
}

/** Whether a field of an object is a secret: by its name, or as the encoded login of a package registry (`_auth`). */
export function isSecretMember(name: string, value: unknown): boolean {
  return isSecretName(name) || (/^_?auth$/i.test(name) && typeof value === "string" && isEncodedLogin(value));
}

/** Whether a text is a base64-encoded `name:password`, as in HTTP basic authentication. */
function isEncodedLogin(text: string): boolean {
  return (
    text.length % 4 === 0 && /^[\x21-\x39\x3b-\x7e]+:[\x20-\x7e]+$/.test(Buffer.from(text, "base64").toString("latin1"))
  );
}

/** Whether a value looks like a password and not like a path, a call or a reference to another name. */
function isPlainPassword(found: string): boolean {
  if (!isTelling(found) || /^[./~]|[()[\]{}]/.test(found) || isSecretName(found)) return false;
  return /\d/.test(found) || !/^[\w$]+(?:\??\.[\w$]+)+$/.test(found);
}

/** Whether a text is too random for a word, a path or a call. */
function looksRandom(text: string): boolean {
  if (text.length < 8 || /[()]/.test(text)) return false;
  const mixed = /[A-Za-z]/.test(text) && /\d/.test(text);
  const long = text.length >= 20 && /[a-z]/.test(text) && /[A-Z]/.test(text);
  return (mixed || long) && bitsPerCharacter(text.slice(0, 256)) >= 2.5;
}

/** A pattern for a value that follows a name. The name makes it a secret; with `random`, the value must look random, too. */
function named(
  before: string,
  secret: string,
  {
    exactCase = false,
    random = false,
    matchMax,
  }: { readonly exactCase?: boolean; readonly random?: boolean; readonly matchMax?: number } = {},
): SecretPattern {
  return {
    ...defined({ matchMax }),
    pattern: new RegExp(`(?<before>${before})(?<secret>${secret})`, exactCase ? "g" : "gi"),
    confirms: (found) => isTelling(found) && (!random || looksRandom(found)),
  };
}

/** An unquoted value with a minimum length; punctuation at its end is not part of it. */
function bare(charactersMin: number): string {
  return String.raw`(?:[^\s"'\x60\\]|\\[^nrt"'\s]){${charactersMin},4096}(?<![,;)\]}])`;
}

function bitsPerCharacter(text: string): number {
  const counts = new Map<string, number>();
  for (const character of text) counts.set(character, (counts.get(character) ?? 0) + 1);
  let bits = 0;
  for (const count of counts.values()) bits -= (count / text.length) * Math.log2(count / text.length);
  return bits;
}
