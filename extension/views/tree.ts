/** One tree view over rows: conversion to items, throttled refresh, loading bar, fault as the view's message. */
import {
  EventEmitter,
  MarkdownString,
  ThemeColor,
  ThemeIcon,
  TreeItem,
  TreeItemCheckboxState,
  TreeItemCollapsibleState,
  window,
  type Command,
  type TreeDataProvider,
  type TreeView,
} from 'vscode';
import type { HostError } from '../../webview/protocol.js';
import { Disposables, type Ends } from '../dispose.js';
import { throttle } from '../throttle.js';
import { withProgress } from '../toasts.js';
import { t } from '../words.js';
import type { Node } from './nodes.js';
import type { Row } from './rows.js';

export interface TreeSource {
  children(parent: Node | undefined): readonly Node[];
  row(node: Node): Row;
  /** Needed for `reveal`; absent where the tree is flat. */
  foldable?(node: Node): boolean | 'open';
  command?(node: Node): Command | undefined;
  /** A row with a check box was turned on or off. */
  check?(nodes: readonly Node[], on: boolean): void;
  /** The view shows progress until this settles. */
  readonly loading?: Promise<unknown> | undefined;
  readonly problem?: HostError | undefined;
  /** A note about the rows. */
  readonly note?: string | undefined;
}

/** Rows are drawn at most twice a second however fast events come. */
const refreshMs = 500;

export class StudioTree implements TreeDataProvider<Node>, Ends {
  readonly view: TreeView<Node>;
  readonly #viewId: string;
  readonly #source: TreeSource;
  readonly #own = new Disposables();
  readonly #changed = this.#own.add(new EventEmitter<Node | undefined>());
  readonly onDidChangeTreeData = this.#changed.event;
  readonly #soon: () => void;
  #waitingFor: Promise<unknown> | undefined;
  #drawn = '';

  constructor(viewId: string, source: TreeSource, o: { readonly multiple?: boolean } = {}) {
    this.#viewId = viewId;
    this.#source = source;
    this.#soon = this.#own.add(throttle(() => this.#draw(), refreshMs));
    this.view = this.#own.add(
      window.createTreeView(viewId, {
        treeDataProvider: this,
        showCollapseAll: source.foldable !== undefined,
        canSelectMany: o.multiple ?? false,
        manageCheckboxStateManually: true,
      }),
    );
    this.#own.add(
      this.view.onDidChangeCheckboxState((e) => {
        for (const state of [TreeItemCheckboxState.Checked, TreeItemCheckboxState.Unchecked]) {
          const nodes = e.items.filter(([, s]) => s === state).map(([n]) => n);
          if (nodes.length > 0) source.check?.(nodes, state === TreeItemCheckboxState.Checked);
        }
      }),
    );
  }
  /** Draws again although the source has not changed: after a refused change. */
  redraw(): void {
    this.#drawn = '';
    this.#soon();
  }
  refresh(): void {
    const { problem, loading, note } = this.#source;
    this.view.message = problem ? `${problem.message} ${problem.remedy}`.trim() : note;
    if (loading && loading !== this.#waitingFor) {
      this.#waitingFor = loading;
      void withProgress({ location: { viewId: this.#viewId } }, () =>
        loading.then(
          () => undefined,
          () => undefined,
        ),
      );
    } else if (!loading && this.#waitingFor) {
      // Awaited rows are not delayed by the view having just been emptied.
      this.#waitingFor = undefined;
      this.#draw();
      return;
    }
    this.#soon();
  }
  /**
   * Draws only when something that is read at a glance has changed: VS Code shows progress whenever a tree is drawn.
   */
  #draw(): void {
    const look = this.#look(undefined);
    if (look === this.#drawn) return;
    this.#drawn = look;
    this.#changed.fire(undefined);
  }
  #look(parent: Node | undefined): string {
    return JSON.stringify(
      this.#source.children(parent).map((n) => {
        const { id, label, description, icon, context, checked } = this.#source.row(n),
          folds = this.#source.foldable?.(n) ?? false;
        return [id, label, description, icon, context, checked, folds && this.#look(n)];
      }),
    );
  }
  getChildren(parent?: Node): Node[] {
    return [...this.#source.children(parent)];
  }
  getParent(): undefined {
    return undefined;
  }
  getTreeItem(node: Node): TreeItem {
    const r = this.#source.row(node),
      folds = this.#source.foldable?.(node) ?? false,
      item = new TreeItem(
        r.label,
        folds === 'open'
          ? TreeItemCollapsibleState.Expanded
          : folds
            ? TreeItemCollapsibleState.Collapsed
            : TreeItemCollapsibleState.None,
      );
    item.id = r.id;
    item.description = r.description;
    item.tooltip = new MarkdownString(r.tooltip, true);
    item.iconPath = new ThemeIcon(r.icon.id, r.icon.color === undefined ? undefined : new ThemeColor(r.icon.color));
    item.contextValue = r.context;
    item.accessibilityInformation = { label: r.spoken };
    if (r.checked !== undefined)
      item.checkboxState = {
        state: r.checked ? TreeItemCheckboxState.Checked : TreeItemCheckboxState.Unchecked,
        tooltip: r.checked ? t('In use: injected into groups') : t('Turned off'),
      };
    const command = this.#source.command?.(node);
    if (command) item.command = command;
    return item;
  }
  dispose(): void {
    this.#own.dispose();
  }
}
