// What the staff's REST answers hold, read once at the door. Missing optional facts become null, never a made-up number.

import {
  asList,
  asObject,
  count,
  flag,
  flagOr,
  type JsonObject,
  listOf,
  number,
  numberOrNull,
  oneOf,
  text,
  textOr,
  textOrNull,
} from "../json";

export const DIMENSIONS = ["cognitive", "affective", "proactive"] as const;
export type Dimension = (typeof DIMENSIONS)[number];
export type PerDimension = Readonly<Record<Dimension, number | null>>;

export interface Verdict {
  readonly direction: string;
  readonly level: string;
  readonly score: number | null;
  readonly version: string;
}

export interface Criterion {
  readonly id: string;
  readonly text: string;
  readonly dimension: Dimension;
  readonly polarity: string;
}

export interface TurnRubric {
  readonly weights: PerDimension;
  readonly criteria: readonly Criterion[];
  readonly generator: string;
  readonly isFallback: boolean;
  readonly fallbackReason: string;
  readonly repairs: number;
  readonly latencyMs: number | null;
}

export interface Judgement {
  readonly criterionId: string;
  /** 0 to 1; null = not graded, with a reason. */
  readonly level: number | null;
  readonly noneReason: string;
  /** Code points of the reply's text. */
  readonly evidence: readonly [number, number] | null;
  /** The judge quoted what the reply does not say. */
  readonly isQuoteUnfound: boolean;
}

export interface Score {
  readonly judge: string;
  /** What the judge is: encoder or model. */
  readonly implementation: string;
  /** How far the judge agrees with what staff labelled, as a sentence. */
  readonly humanEvidence: string;
  /** 0 to 1; null where the score is partial. */
  readonly reward: number | null;
  readonly isPartial: boolean;
  readonly byDimension: PerDimension;
  readonly judgements: readonly Judgement[];
}

export interface Reply {
  readonly id: string;
  readonly seq: number;
  readonly status: string;
  readonly text: string;
  readonly code: string;
  readonly isSelected: boolean;
  readonly siblingIndex: number;
  readonly policy: string;
  readonly firstTokenMs: number | null;
  readonly totalMs: number | null;
  readonly tokens: number | null;
  readonly feedback: number;
  readonly score: Score | null;
}

export interface Note {
  readonly id: string;
  readonly kind: string;
  readonly text: string;
  readonly author: string;
  readonly createdAt: string;
}

export interface Turn {
  readonly id: string;
  readonly seq: number;
  readonly text: string;
  readonly createdAt: string;
  readonly isRedacted: boolean;
  readonly safety: readonly Verdict[];
  readonly rubric: TurnRubric | null;
  readonly replies: readonly Reply[];
  readonly notes: readonly Note[];
}

export interface Page<T> {
  readonly results: readonly T[];
  /** How to ask for the page after this one; null = there is none. */
  readonly next: string | null;
}

function perDimension(from: JsonObject): PerDimension {
  return {
    cognitive: numberOrNull(from, "cognitive"),
    affective: numberOrNull(from, "affective"),
    proactive: numberOrNull(from, "proactive"),
  };
}

function optional<T>(value: unknown, read: (from: JsonObject) => T, field: string): T | null {
  return value === null || value === undefined ? null : read(asObject(value, field));
}

function readRubric(from: JsonObject): TurnRubric {
  return {
    weights: perDimension(asObject(from.weights, "weights")),
    criteria: listOf(from, "criteria", (item) => ({
      id: text(item, "id"),
      text: text(item, "text"),
      dimension: oneOf(item, "dimension", DIMENSIONS),
      polarity: textOr(item, "polarity", "want"),
    })),
    generator: textOr(from, "generator", ""),
    isFallback: flagOr(from, "is_fallback", false),
    fallbackReason: textOr(from, "fallback_reason", ""),
    repairs: numberOrNull(from, "repairs") ?? 0,
    latencyMs: numberOrNull(from, "latency_ms"),
  };
}

function readEvidence(value: unknown): readonly [number, number] | null {
  if (value === null || value === undefined) return null;
  const [start, end] = asList(value, "evidence");
  return typeof start === "number" && typeof end === "number" ? [start, end] : null;
}

function readScore(from: JsonObject): Score {
  return {
    judge: textOr(from, "judge", ""),
    implementation: textOr(from, "implementation", ""),
    humanEvidence: textOr(from, "human_evidence", ""),
    reward: numberOrNull(from, "reward"),
    isPartial: flagOr(from, "partial", false),
    byDimension: perDimension(from.by_dimension ? asObject(from.by_dimension, "by_dimension") : {}),
    judgements: listOf(from, "judgements", (item) => ({
      criterionId: text(item, "criterion_id"),
      level: numberOrNull(item, "level"),
      noneReason: textOr(item, "none_reason", ""),
      evidence: readEvidence(item.evidence),
      isQuoteUnfound: flagOr(item, "quote_unfound", false),
    })),
  };
}

function readReply(from: JsonObject): Reply {
  return {
    id: text(from, "id"),
    seq: number(from, "seq"),
    status: text(from, "status"),
    text: text(from, "text"),
    code: textOr(from, "code", ""),
    isSelected: flagOr(from, "selected", true),
    siblingIndex: count(from, "sibling_index"),
    policy: textOr(from, "policy", ""),
    firstTokenMs: numberOrNull(from, "first_token_ms"),
    totalMs: numberOrNull(from, "total_ms"),
    tokens: numberOrNull(from, "tokens"),
    feedback: numberOrNull(from, "feedback") ?? 0,
    score: optional(from.score, readScore, "score"),
  };
}

function readNote(from: JsonObject): Note {
  return {
    id: text(from, "id"),
    kind: text(from, "kind"),
    text: text(from, "text"),
    author: textOr(from, "author", ""),
    createdAt: textOr(from, "created_at", ""),
  };
}

export function readTurn(from: JsonObject): Turn {
  return {
    id: text(from, "id"),
    seq: number(from, "seq"),
    text: text(from, "text"),
    createdAt: textOr(from, "created_at", ""),
    isRedacted: flag(from, "redacted"),
    safety: listOf(from, "safety", (item) => ({
      direction: text(item, "direction"),
      level: text(item, "level"),
      score: numberOrNull(item, "score"),
      version: textOr(item, "version", ""),
    })),
    rubric: optional(from.rubric, readRubric, "rubric"),
    replies: listOf(from, "replies", readReply),
    notes: listOf(from, "notes", readNote),
  };
}

export interface ConversationRow {
  readonly id: string;
  readonly site: string;
  readonly kind: string;
  readonly state: string;
  readonly control: string;
  readonly card: string;
  readonly turns: number;
  readonly openAlerts: number;
  readonly createdAt: string;
  readonly lastActivityAt: string;
}

export function readConversationRow(from: JsonObject): ConversationRow {
  return {
    id: text(from, "id"),
    site: textOr(from, "site", ""),
    kind: textOr(from, "kind", ""),
    state: textOr(from, "state", ""),
    control: textOr(from, "control", ""),
    card: textOr(from, "card_level", "none"),
    turns: numberOrNull(from, "visitor_turns") ?? 0,
    openAlerts: numberOrNull(from, "open_alerts") ?? 0,
    createdAt: textOr(from, "created_at", ""),
    lastActivityAt: textOr(from, "last_activity_at", ""),
  };
}

export interface Alert {
  readonly id: string;
  readonly kind: string;
  readonly conversation: string | null;
  readonly raisedAt: string;
  readonly acknowledgedAt: string | null;
  readonly acknowledgedBy: string;
}

export function readAlert(from: JsonObject): Alert {
  return {
    id: String(from.id ?? ""),
    kind: textOr(from, "kind", ""),
    conversation: textOrNull(from, "conversation"),
    raisedAt: textOr(from, "raised_at", ""),
    acknowledgedAt: textOrNull(from, "acknowledged_at"),
    acknowledgedBy: textOr(from, "acknowledged_by", ""),
  };
}

/** A cursor, whether the server names it bare or as the address of the next page. */
export function cursorOf(next: string | null): string | null {
  if (next === null || next === "") return null;
  const query = /[?&]cursor=([^&]+)/.exec(next)?.[1];
  return query === undefined ? next : decodeURIComponent(query);
}

/** A page of turns; `notes` are what staff wrote before the visitor wrote anything. */
export interface TurnPage extends Page<Turn> {
  readonly notes: readonly Note[];
}

export function readTurnPage(value: unknown): TurnPage {
  return { ...readPage(value, readTurn), notes: listOf(asObject(value, "page"), "notes", readNote) };
}

export function readPage<T>(value: unknown, read: (from: JsonObject) => T): Page<T> {
  const from = asObject(value, "page");
  return { results: listOf(from, "results", read), next: cursorOf(textOrNull(from, "next")) };
}
