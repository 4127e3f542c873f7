import type { Schemas } from "@/api/client";

const GIB = 1024 ** 3;
const MIB = 1024 ** 2;

export const SMOLLM = "builtin/smollm2-135m-instruct";

export const someMemory = (changes: Partial<Schemas["Memory"]> = {}): Schemas["Memory"] => ({
  weights: 98 * MIB,
  kv: 180 * MIB,
  projector: 0,
  compute: 60 * MIB,
  total: 338 * MIB,
  device: "cpu",
  ...changes,
});

export const aModel = (changes: Partial<Schemas["ModelCard"]> = {}): Schemas["ModelCard"] => ({
  id: SMOLLM,
  object: "model",
  created: 1_700_000_000,
  owned_by: "local",
  status: "loaded",
  task: "chat",
  modalities: ["text"],
  context_length: 8192,
  display_name: "SmolLM2 135M Instruct",
  source: "builtin",
  quant: "Q4_1",
  size_bytes: 98 * MIB,
  memory: someMemory(),
  problem: null,
  is_gguf: true,
  is_lora: false,
  base_model: null,
  consents: [],
  ...changes,
});

export const aLoadedModel = (
  changes: Partial<Schemas["LoadedModel"]> = {},
): Schemas["LoadedModel"] => ({
  model: SMOLLM,
  display_name: "SmolLM2 135M Instruct",
  is_vision: false,
  is_lora: false,
  is_gguf: true,
  adapters: [],
  gguf_variant: "Q4_1",
  is_audio: false,
  audio_type: null,
  has_audio_input: false,
  inference: {
    temperature: 0.2,
    top_p: 0.9,
    top_k: null,
    min_p: null,
    repetition_penalty: null,
    presence_penalty: null,
    trust_remote_code: false,
  },
  context_length: 8192,
  native_context_length: 8192,
  supports_reasoning: false,
  supports_tools: false,
  cache_type_kv: "f16",
  chat_template: null,
  engine: "llama_server",
  task: "chat",
  memory: someMemory(),
  warnings: [],
  load_seconds: 0.6,
  ...changes,
});

export const anEngine = (
  changes: Partial<Schemas["EngineStatus"]> = {},
): Schemas["EngineStatus"] => ({
  model: SMOLLM,
  display_name: "SmolLM2 135M Instruct",
  task: "chat",
  engine: "llama_server",
  status: { state: "ready", pid: 4242, load_seconds: 0.6 },
  pid: 4242,
  uptime_s: 75,
  busy: 0,
  queued: 0,
  memory: someMemory(),
  resident_bytes: 300 * MIB,
  ttl_left_s: null,
  pinned: false,
  restarts: 0,
  last_error: null,
  loaded: aLoadedModel(),
  ...changes,
});

/** 16 GiB, of which 8 GiB are free. */
export const aLedger = (changes: Partial<Schemas["LedgerInfo"]> = {}): Schemas["LedgerInfo"] => ({
  total: 16 * GIB,
  free: 8 * GIB,
  promised: 0,
  devices: [],
  ...changes,
});

export const aStatus = (changes: Partial<Schemas["StatusReply"]> = {}): Schemas["StatusReply"] => ({
  active_model: SMOLLM,
  is_vision: false,
  is_lora: false,
  is_gguf: true,
  gguf_variant: "Q4_1",
  is_audio: false,
  audio_type: null,
  has_audio_input: false,
  loading: [],
  loaded: [SMOLLM],
  asleep: [],
  inference: aLoadedModel().inference,
  supports_reasoning: false,
  supports_tools: false,
  context_length: 8192,
  engines: [anEngine()],
  ledger: aLedger(),
  downloads: [],
  ...changes,
});

/** Nothing is loaded. */
export const anEmptyStatus = (
  changes: Partial<Schemas["StatusReply"]> = {},
): Schemas["StatusReply"] =>
  aStatus({
    active_model: null,
    loaded: [],
    engines: [],
    inference: null,
    context_length: null,
    ...changes,
  });

export const aSystem = (changes: Partial<Schemas["SystemReply"]> = {}): Schemas["SystemReply"] => ({
  version: "0.1.0",
  cpu: { name: "A processor", cores: 4, threads: 8, flags: [] },
  memory: { total_bytes: 16 * GIB, available_bytes: 8 * GIB },
  devices: [],
  engines: [{ engine: "llama_server", version: "b10434", source: "wheel", problem: null }],
  process: { resident_bytes: 90 * MIB, uptime_s: 60 },
  ...changes,
});
