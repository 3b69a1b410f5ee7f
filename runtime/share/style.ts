/** The look of a page, light and dark. Colours are variables; meaning is never in colour alone. */
export const STYLE = `
:root{color-scheme:light dark;--ink:#1f2328;--dim:#57606a;--line:#d0d7de;--ground:#fff;--raised:#f6f8fa;--accent:#0969da;--good:#116329;--bad:#b3261e;--c0:#7c3aed;--c1:#0969da;--c2:#9a5b00;--c3:#116329}
@media (prefers-color-scheme:dark){:root{--ink:#e6edf3;--dim:#9da7b3;--line:#3d444d;--ground:#0d1117;--raised:#161b22;--accent:#58a6ff;--good:#56d364;--bad:#ff8b82;--c0:#c297ff;--c1:#58a6ff;--c2:#e3b341;--c3:#56d364}}
*{box-sizing:border-box}
body{margin:0 auto;padding:1.25rem 1.5rem 4rem;max-width:76rem;font:15px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif;color:var(--ink);background:var(--ground)}
h1{font-size:1.4rem;line-height:1.3;margin:.2rem 0;overflow-wrap:anywhere}
h2{font-size:1.1rem;margin:2rem 0 .5rem}
h3{font-size:1rem;margin:1rem 0 .25rem}
p{margin:.4rem 0;max-width:60rem;overflow-wrap:anywhere}
a{color:var(--accent)}
code,pre{font:13px/1.45 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;overflow-wrap:anywhere;white-space:pre-wrap}
pre{background:var(--raised);border:1px solid var(--line);border-radius:6px;padding:.75rem;max-height:32rem;overflow:auto}
.dim,figcaption,caption,dt{color:var(--dim)}
.success{color:var(--good)}.failure,.error{color:var(--bad)}
dl{display:flex;flex-wrap:wrap;gap:.5rem 2rem;margin:.75rem 0}
dl div{min-width:6rem;max-width:100%}dt{font-size:.8rem}dd{margin:0;overflow-wrap:anywhere}
.wide{overflow-x:auto;max-width:100%}
table{border-collapse:collapse;margin:.5rem 0;font-size:.9rem;font-variant-numeric:tabular-nums}
caption{text-align:left;font-size:.85rem;padding-bottom:.25rem}
th,td{text-align:left;vertical-align:top;padding:.2rem 1.1rem .2rem 0;border-bottom:1px solid var(--line);font-weight:400;overflow-wrap:anywhere}
thead th{font-weight:600;white-space:nowrap}
details{margin:.5rem 0}summary{cursor:pointer}
figure{margin:1rem 0}
.store{position:absolute}
.screen{display:block;width:100%;height:auto;border:1px solid var(--line);background:var(--raised)}
.gone{border:1px dashed var(--line);padding:1rem;color:var(--dim)}
.halo{fill:none;stroke:#fff;stroke-width:6;stroke-opacity:.9}
.mark{fill:none;stroke:#c2185b;stroke-width:3}
.unmarked .halo,.unmarked .mark{display:none}
.charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(21rem,1fr));gap:.5rem 1.5rem}
.charts .first{grid-column:1/-1}
.plot{display:block;width:100%;height:auto;overflow:visible}
.plot text{fill:var(--dim);font-size:11px}
.grid{stroke:var(--line);fill:none}
.s0{stroke:var(--c0);--s:var(--c0)}.s1{stroke:var(--c1);--s:var(--c1)}.s2{stroke:var(--c2);--s:var(--c2)}.s3{stroke:var(--c3);--s:var(--c3)}
.line{fill:none;stroke-width:2}.s1.line{stroke-dasharray:none}.s2.line{stroke-dasharray:7 3}.s3.line{stroke-dasharray:2 3}
.band{fill:var(--s);stroke:none;opacity:.15}.dot{fill:var(--s);stroke:var(--ground)}
.legend{display:flex;flex-wrap:wrap;gap:0 1.25rem;font-size:.85rem;margin:.25rem 0}.legend svg{width:1.6rem;height:.7rem;margin-right:.4rem}
.strip{display:flex;gap:.6rem;overflow-x:auto;padding:.25rem 0}
.strip figure{flex:0 0 15rem;margin:0}.strip figcaption{font-size:.8rem;overflow-wrap:anywhere}
.viewer{display:grid;grid-template-columns:minmax(0,1fr) 17rem;gap:1.5rem;align-items:start}
.viewer nav{max-height:75vh;overflow:auto;position:sticky;top:1rem;border:1px solid var(--line);border-radius:6px}
.viewer ol{list-style:none;margin:0;padding:0}
.viewer li a{display:block;padding:.3rem .6rem;color:inherit;text-decoration:none;border-left:3px solid transparent;overflow-wrap:anywhere;font-size:.9rem}
.viewer li a:hover{background:var(--raised)}
.viewer li a[aria-current]{border-left-color:var(--accent);background:var(--raised)}
a:focus-visible,button:focus-visible,summary:focus-visible,[tabindex]:focus-visible{outline:2px solid var(--accent);outline-offset:1px}
.bar{display:none;gap:.5rem;align-items:center;margin:.5rem 0}
.js .bar{display:flex;flex-wrap:wrap}
button{font:inherit;color:inherit;background:var(--raised);border:1px solid var(--line);border-radius:6px;padding:.2rem .8rem;cursor:pointer}
button[disabled]{opacity:.5;cursor:default}
[hidden]{display:none!important}
.did{font-size:1.05rem;margin:.5rem 0}
.thought{border-left:3px solid var(--line);padding-left:.75rem;white-space:pre-wrap}
footer{margin-top:3rem;color:var(--dim);font-size:.85rem}
@media (max-width:56rem){.viewer{grid-template-columns:1fr}.viewer nav{position:static;max-height:16rem}}
@media print{.viewer{display:block}.viewer nav,.bar{display:none!important}.step[hidden]{display:block!important}}
`;
