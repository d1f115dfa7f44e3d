//! Panels as SVG: lines with points and the spread of each, axes from zero, a legend below.

use super::{Panel, Point};
use std::fmt::Write;

const WIDTH: f64 = 460.0;
/// Of a panel without its legend.
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 46.0;
const TITLE: f64 = 34.0;
const LEGEND_LINE: f64 = 17.0;
/// Colours that people with any kind of colour vision can tell apart (Okabe and Ito).
const COLOURS: [&str; 7] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555",
];
/// Lines of series beyond the colours are broken.
const DASHES: [&str; 3] = ["none", "6 3", "2 3"];

/// The whole drawing, two panels side by side.
pub(super) fn draw(title: &str, panels: &[Panel]) -> String {
    let columns = panels.len().clamp(1, 2);
    let mut body = String::new();
    let mut y = TITLE;
    for row in panels.chunks(columns) {
        let legend = row.iter().map(|p| p.series.len()).max().unwrap_or(0) as f64 * LEGEND_LINE;
        for (i, panel) in row.iter().enumerate() {
            let _ = writeln!(
                body,
                r#"<g transform="translate({} {y})">"#,
                i as f64 * WIDTH
            );
            draw_panel(&mut body, panel);
            body.push_str("</g>\n");
        }
        y += HEIGHT + legend + 12.0;
    }
    let width = columns as f64 * WIDTH;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {y}\" width=\"{width}\" height=\"{y}\" font-family=\"sans-serif\" font-size=\"11\" fill=\"#222\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text x=\"{LEFT}\" y=\"22\" font-size=\"14\" font-weight=\"bold\">{}</text>\n{body}</svg>\n",
        escaped(title)
    )
}

/// From values to places in a panel.
struct Scale {
    x_max: f64,
    y_max: f64,
}

impl Scale {
    fn x(&self, x: f64) -> f64 {
        LEFT + x / self.x_max * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, y: f64) -> f64 {
        HEIGHT - BOTTOM - y / self.y_max * (HEIGHT - TOP - BOTTOM)
    }
}

fn draw_panel(out: &mut String, panel: &Panel) {
    let points = || panel.series.iter().flat_map(|s| &s.points);
    // What varies is counted, so that ticks are whole numbers.
    let x_step = step(points().map(|p| p.x).fold(0.0, f64::max)).max(1.0);
    let y_step = step(points().map(|p| p.y + p.spread).fold(0.0, f64::max));
    let up = |max: f64, step: f64| (max / step).ceil().max(1.0) * step;
    let scale = Scale {
        x_max: up(points().map(|p| p.x).fold(0.0, f64::max), x_step),
        y_max: up(points().map(|p| p.y + p.spread).fold(0.0, f64::max), y_step),
    };
    let _ = writeln!(
        out,
        r#"<text x="{LEFT}" y="{}" font-weight="bold">{}</text>"#,
        TOP - 12.0,
        escaped(panel.title)
    );
    draw_axes(out, panel, &scale, [x_step, y_step]);
    for (i, series) in panel.series.iter().enumerate() {
        let colour = COLOURS[i % COLOURS.len()];
        let dash = DASHES[i / COLOURS.len() % DASHES.len()];
        draw_series(out, &series.points, &scale, colour, dash);
        let label = if series.label.is_empty() {
            panel.title
        } else {
            &series.label
        };
        let y = HEIGHT + i as f64 * LEGEND_LINE;
        let _ = writeln!(
            out,
            r#"<line x1="{LEFT}" y1="{0}" x2="{1}" y2="{0}" stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}"/><text x="{2}" y="{3}">{4}</text>"#,
            y,
            LEFT + 24.0,
            LEFT + 32.0,
            y + 4.0,
            escaped(label),
        );
    }
}

fn draw_axes(out: &mut String, panel: &Panel, scale: &Scale, [x_step, y_step]: [f64; 2]) {
    let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
    let mut y = 0.0;
    while y <= scale.y_max + y_step / 2.0 {
        let at = scale.y(y);
        let _ = writeln!(
            out,
            r##"<line x1="{LEFT}" y1="{at:.1}" x2="{right}" y2="{at:.1}" stroke="#ddd"/><text x="{}" y="{:.1}" text-anchor="end">{}</text>"##,
            LEFT - 6.0,
            at + 4.0,
            number(y),
        );
        y += y_step;
    }
    let mut x = 0.0;
    while x <= scale.x_max + x_step / 2.0 {
        let at = scale.x(x);
        let _ = writeln!(
            out,
            r##"<line x1="{at:.1}" y1="{bottom}" x2="{at:.1}" y2="{}" stroke="#222"/><text x="{at:.1}" y="{}" text-anchor="middle">{}</text>"##,
            bottom + 4.0,
            bottom + 17.0,
            number(x),
        );
        x += x_step;
    }
    let middle = TOP.midpoint(bottom);
    let _ = writeln!(
        out,
        r##"<path d="M{LEFT} {TOP}V{bottom}H{right}" fill="none" stroke="#222"/><text x="{}" y="{}" text-anchor="middle">{}</text><text x="14" y="{middle}" text-anchor="middle" transform="rotate(-90 14 {middle})">tokens per second</text>"##,
        LEFT.midpoint(right),
        bottom + 33.0,
        escaped(panel.x_title),
    );
}

fn draw_series(out: &mut String, points: &[Point], scale: &Scale, colour: &str, dash: &str) {
    let line: Vec<_> = points
        .iter()
        .map(|p| format!("{:.1},{:.1}", scale.x(p.x), scale.y(p.y)))
        .collect();
    let _ = writeln!(
        out,
        r#"<polyline points="{}" fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}"/>"#,
        line.join(" ")
    );
    for p in points {
        let x = scale.x(p.x);
        let _ = writeln!(
            out,
            r#"<line x1="{x:.1}" y1="{:.1}" x2="{x:.1}" y2="{:.1}" stroke="{colour}"/><circle cx="{x:.1}" cy="{:.1}" r="3.5" fill="{colour}" data-x="{}" data-y="{:.3}"><title>{}: {:.2} ± {:.2} t/s</title></circle>"#,
            scale.y((p.y - p.spread).max(0.0)),
            scale.y(p.y + p.spread),
            scale.y(p.y),
            p.x,
            p.y,
            escaped(&p.name),
            p.y,
            p.spread,
        );
    }
}

/// A round distance of ticks, so that four to eight of them reach `max`.
fn step(max: f64) -> f64 {
    if !(max > 0.0 && max.is_finite()) {
        return 1.0;
    }
    let power = 10f64.powf((max / 8.0).log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|n| n * power);
    steps
        .into_iter()
        .find(|step| max / step <= 8.0)
        .unwrap_or(steps[3])
}

fn number(value: f64) -> String {
    // Multiples of a decimal step, free of what binary fractions leave over.
    format!("{}", (value * 1e6).round() / 1e6)
}

fn escaped(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => result.push_str("&amp;"),
            '<' => result.push_str("&lt;"),
            '>' => result.push_str("&gt;"),
            '"' => result.push_str("&quot;"),
            // XML has no control characters.
            c if c.is_control() => result.push('\u{fffd}'),
            c => result.push(c),
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_four_to_eight() {
        for (max, expected) in [
            (8.0, 1.0),
            (9.0, 2.0),
            (30.0, 5.0),
            (4096.0, 1000.0),
            (0.7, 0.1),
            (0.0, 1.0),
        ] {
            let step = step(max);
            assert!((step / expected - 1.0).abs() < 1e-9, "{max}: {step}");
        }
        assert_eq!(number(0.1 + 0.2), "0.3");
    }

    #[test]
    fn text_cannot_leave_its_element() {
        assert_eq!(
            escaped("a<b>&\"c\"\u{1}"),
            "a&lt;b&gt;&amp;&quot;c&quot;\u{fffd}"
        );
    }
}
