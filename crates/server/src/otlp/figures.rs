//! Metrics in the OpenMetrics text format as a request of OTLP.
//!
//! The text is our own, so the reader knows counters, gauges and histograms, and skips lines of other
//! kinds. Counters and histograms are sums since the start of the process.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint,
    ResourceMetrics, ScopeMetrics, Sum,
};
use opentelemetry_proto::tonic::resource::v1::Resource as OtlpResource;
use opentelemetry_proto::transform::common::tonic::ResourceAttributesWithSchema;
use opentelemetry_sdk::Resource;

/// The labels of a sample.
type Labels = Vec<(String, String)>;

/// A metric of the text.
#[derive(Debug, Default)]
struct Family {
    kind: String,
    help: String,
    unit: String,
    samples: Vec<Sample>,
}

/// One line: the end of its name after that of the metric, its labels and its value.
#[derive(Debug, PartialEq)]
struct Sample {
    suffix: String,
    labels: Labels,
    value: f64,
}

/// Returns the request for these metrics; times are in nanoseconds since 1970.
pub(super) fn request(
    text: &str,
    resource: &Resource,
    began: u64,
    now: u64,
) -> ExportMetricsServiceRequest {
    let metrics = families(text).into_iter().filter_map(|(name, family)| {
        let data = data(&family, began, now)?;
        Some(Metric {
            name,
            description: family.help,
            unit: if family.unit == "seconds" { "s".to_owned() } else { family.unit },
            data: Some(data),
            ..Metric::default()
        })
    });
    let scope = InstrumentationScope { name: "mingle".to_owned(), ..Default::default() };
    let scope_metrics =
        ScopeMetrics { scope: Some(scope), metrics: metrics.collect(), ..Default::default() };
    let attributes = ResourceAttributesWithSchema::from(resource).attributes.0;
    ExportMetricsServiceRequest {
        resource_metrics: vec![ResourceMetrics {
            resource: Some(OtlpResource { attributes, ..Default::default() }),
            scope_metrics: vec![scope_metrics],
            ..Default::default()
        }],
    }
}

/// Reads the metrics of a text, by name.
fn families(text: &str) -> BTreeMap<String, Family> {
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let mut current = String::new();
    for line in text.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            let mut words = comment.splitn(3, ' ');
            let (what, name) = (words.next(), words.next());
            let (Some(what), Some(name)) = (what, name) else { continue };
            let rest = words.next().unwrap_or_default().to_owned();
            name.clone_into(&mut current);
            let family = families.entry(current.clone()).or_default();
            match what {
                "HELP" => family.help = rest,
                "TYPE" => family.kind = rest,
                "UNIT" => family.unit = rest,
                _ => {}
            }
        } else if let Some(family) = families.get_mut(&current) {
            family.samples.extend(sample(line, &current));
        }
    }
    families
}

/// Reads a line of the metric `name`; none if it is not one of that metric.
fn sample(line: &str, name: &str) -> Option<Sample> {
    let rest = line.strip_prefix(name)?;
    let end = rest.find(['{', ' '])?;
    let (suffix, mut rest) = rest.split_at(end);
    let mut labels = Labels::new();
    if let Some(inner) = rest.strip_prefix('{') {
        rest = inner;
        loop {
            rest = rest.trim_start_matches(',');
            if let Some(after) = rest.strip_prefix('}') {
                rest = after;
                break;
            }
            let (label, after) = rest.split_once("=\"")?;
            let (value, after) = quoted(after)?;
            labels.push((label.to_owned(), value));
            rest = after;
        }
    }
    let value = rest.split_whitespace().next()?.parse().ok()?;
    Some(Sample { suffix: suffix.to_owned(), labels, value })
}

/// Reads a text up to its closing quote. Returns it, and the rest of the line.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => match characters.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}

fn data(family: &Family, began: u64, now: u64) -> Option<Data> {
    let temporality = i32::from(AggregationTemporality::Cumulative);
    let point = |sample: &Sample, start| NumberDataPoint {
        attributes: attributes(&sample.labels),
        start_time_unix_nano: start,
        time_unix_nano: now,
        value: Some(Value::AsDouble(sample.value)),
        ..NumberDataPoint::default()
    };
    let samples = family.samples.iter();
    match family.kind.as_str() {
        "counter" => Some(Data::Sum(Sum {
            data_points: samples.map(|sample| point(sample, began)).collect(),
            aggregation_temporality: temporality,
            is_monotonic: true,
        })),
        "gauge" => {
            Some(Data::Gauge(Gauge { data_points: samples.map(|it| point(it, 0)).collect() }))
        }
        "histogram" => Some(Data::Histogram(Histogram {
            data_points: histograms(&family.samples, began, now),
            aggregation_temporality: temporality,
        })),
        _ => None,
    }
}

/// Builds the histograms of a metric: one for each set of labels, of which `le` is none.
fn histograms(samples: &[Sample], began: u64, now: u64) -> Vec<HistogramDataPoint> {
    let mut points: BTreeMap<Labels, HistogramDataPoint> = BTreeMap::new();
    // The number of values below the last bound.
    let mut below: BTreeMap<Labels, u64> = BTreeMap::new();
    for sample in samples {
        let mut labels = sample.labels.clone();
        let bound = labels.iter().position(|(name, _)| name == "le").map(|at| labels.remove(at).1);
        let point = points.entry(labels.clone()).or_insert_with(|| HistogramDataPoint {
            attributes: attributes(&labels),
            start_time_unix_nano: began,
            time_unix_nano: now,
            ..HistogramDataPoint::default()
        });
        match (sample.suffix.as_str(), bound) {
            ("_sum", _) => point.sum = Some(sample.value),
            ("_count", _) => point.count = sample.value as u64,
            ("_bucket", Some(bound)) => {
                let (count, before) = (sample.value as u64, below.entry(labels).or_default());
                point.bucket_counts.push(count.saturating_sub(*before));
                *before = count;
                // The last bucket has no bound.
                point.explicit_bounds.extend(bound.parse().ok().filter(|it: &f64| it.is_finite()));
            }
            _ => {}
        }
    }
    points.into_values().collect()
}

fn attributes(labels: &Labels) -> Vec<KeyValue> {
    let attribute = |(key, value): &(String, String)| KeyValue {
        key: key.clone(),
        value: Some(AnyValue { value: Some(Any::StringValue(value.clone())) }),
        ..KeyValue::default()
    };
    labels.iter().map(attribute).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(all: &[(&str, &str)]) -> Labels {
        all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_line_has_a_name_labels_and_a_value() {
        let of = |suffix: &str, all: &[(&str, &str)], value| {
            Some(Sample { suffix: suffix.to_owned(), labels: labels(all), value })
        };
        assert_eq!(sample("m 3", "m"), of("", &[], 3.0));
        assert_eq!(sample("m_total 3", "m"), of("_total", &[], 3.0));
        let line = r#"m_total{a="x, y}",b="say \"no\" \\ "} 0.5"#;
        let expected = [("a", "x, y}"), ("b", r#"say "no" \ "#)];
        assert_eq!(sample(line, "m"), of("_total", &expected, 0.5));
        for broken in ["m", "n 3", "m{a=\"b} 3", "m{a} 3", "m x"] {
            assert_eq!(sample(broken, "m"), None, "{broken}");
        }
    }

    #[test]
    fn a_histogram_has_the_values_between_its_bounds() {
        let text = "# HELP m Times.\n# TYPE m histogram\n# UNIT m seconds\n\
                    m_sum{s=\"a\"} 3.5\nm_count{s=\"a\"} 4\nm_bucket{le=\"0.5\",s=\"a\"} 1\n\
                    m_bucket{le=\"1.0\",s=\"a\"} 3\nm_bucket{le=\"+Inf\",s=\"a\"} 4\n# EOF\n";
        let families = families(text);
        assert_eq!((families.len(), &*families["m"].unit), (1, "seconds"));
        let points = histograms(&families["m"].samples, 1, 2);
        assert_eq!(points.len(), 1);
        let point = &points[0];
        assert_eq!((point.count, point.sum), (4, Some(3.5)));
        assert_eq!(
            (&*point.bucket_counts, &*point.explicit_bounds),
            (&[1, 2, 1][..], &[0.5, 1.0][..])
        );
        assert_eq!((point.start_time_unix_nano, point.time_unix_nano), (1, 2));
    }
}
